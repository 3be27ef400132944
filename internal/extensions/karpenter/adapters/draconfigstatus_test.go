package adapters

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/internal/status"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// draConfigShowing is a DRAConfig of which the managers have written the fields.
func draConfigShowing(status draConfigStatus, fields map[string]string) *unstructured.Unstructured {
	shown, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		panic(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": shown}}
	object.SetAPIVersion("test.karpenter.sh/v1alpha1")
	object.SetKind("DRAConfig")
	object.SetName("a")
	var managed []metav1.ManagedFieldsEntry
	for manager, written := range fields {
		managed = append(managed, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(written)})
	}
	object.SetManagedFields(managed)
	return object
}

// draWorld is a Writer at work on an API server that keeps the status of one
// DRAConfig with two templates.
type draWorld struct {
	*status.Writer
	t       *testing.T
	object  config.Acceptance
	applies int
	fail    error
}

func newDRAWorld(t *testing.T, fields map[string]string) *draWorld {
	t.Helper()
	w := &draWorld{t: t, object: config.Acceptance{Generation: 1, Templates: []string{"a.p", "a.q"}, Source: draConfigShowing(draConfigStatus{}, fields)}}
	kinds, err := Kinds(DRAConfigKind, NodeOverlayKind)
	require.NoError(t, err)
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("patch", "draconfigs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		require.Equal(t, "status", patch.GetSubresource())
		require.False(t, patch.PatchOptions.Force != nil && *patch.PatchOptions.Force, "what is someone else's is not taken")
		w.applies++
		if w.fail != nil {
			return true, nil, w.fail
		}
		var applied unstructured.Unstructured
		require.NoError(t, applied.UnmarshalJSON(patch.GetPatch()))
		w.object.Source = w.object.Source.DeepCopy()
		w.object.Source.Object["status"] = applied.Object["status"]
		return true, &applied, nil
	})
	w.Writer = status.New(client, nil, nil, func(kind string) map[string]config.Acceptance {
		require.Equal(t, DRAConfigKind, kind, "a NodeOverlay has no status of ours")
		return map[string]config.Acceptance{"a": w.object}
	}, kinds...)
	runtest.UntilEnd(t.Context(), t, func(ctx context.Context) { w.Run(ctx, func() bool { return true }) })
	return w
}

func (w *draWorld) settle() draConfigStatus {
	w.t.Helper()
	w.Changed()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	var status draConfigStatus
	shown, _, err := unstructured.NestedMap(w.object.Source.Object, "status")
	require.NoError(w.t, err)
	require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(shown, &status))
	return status
}

func outcomesOfPools(p, q resourceslice.Outcome) map[string]resourceslice.Outcome {
	return map[string]resourceslice.Outcome{"a.p": p, "a.q": q, "other": {Slices: 100}}
}

func TestDRAConfig(t *testing.T) {
	t.Parallel()
	clash := resourceslice.Outcome{Problem: errors.New("both have the device gpu-0")}
	both := outcomesOfPools(resourceslice.Outcome{Slices: 1, Devices: 8}, resourceslice.Outcome{Slices: 2, Devices: 8})
	for name, test := range map[string]struct {
		nodes                 map[string]map[string]resourceslice.Outcome
		err                   error
		templates             bool
		nodeCount, sliceCount *int32
		ready, validated      metav1.ConditionStatus
		reason, message       string
	}{
		"no node yet":      {nil, nil, true, nil, nil, "True", "True", "NoNode", "no fake node is selected"},
		"published":        {map[string]map[string]resourceslice.Outcome{"node n": both, "node m": {"a.q": {Slices: 1}}}, nil, true, new(int32(2)), new(int32(4)), "True", "True", "Published", "published on 2 nodes"},
		"waiting":          {map[string]map[string]resourceslice.Outcome{"node n": outcomesOfPools(resourceslice.Outcome{}, resourceslice.Outcome{})}, nil, true, new(int32(1)), new(int32(0)), "True", "True", "Waiting", "publishWhen does not match yet on 1 node that it selects"},
		"clashing":         {map[string]map[string]resourceslice.Outcome{"node n": both, "node m": outcomesOfPools(clash, clash)}, nil, true, new(int32(2)), new(int32(3)), "False", "True", "Failing", "node m: both have the device gpu-0"},
		"refused":          {nil, errors.New("bad"), false, nil, nil, "False", "False", "NotAccepted", "no version has been accepted"},
		"old one in force": {map[string]map[string]resourceslice.Outcome{"node n": both}, errors.New("bad"), true, new(int32(1)), new(int32(3)), "False", "False", "Invalid", "the newest version is refused, and the last good one is in force"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newDRAWorld(t, map[string]string{"kwok-dra": `{"f:status":{"f:nodeCount":{}}}`, "kubectl": `{"f:spec":{}}`})
				if w.object.Err = test.err; !test.templates {
					w.object.Templates = nil
				}
				for of, outcomes := range test.nodes {
					w.Outcomes(of, outcomes)
				}
				shown := w.settle()
				require.Equal(t, test.nodeCount, shown.NodeCount)
				require.Equal(t, test.sliceCount, shown.ResourceSliceCount)
				ready := meta.FindStatusCondition(shown.Conditions, conditionReady)
				require.Equal(t, test.ready, ready.Status)
				require.Equal(t, test.reason, ready.Reason)
				require.Equal(t, test.message, ready.Message)
				require.Equal(t, test.validated, meta.FindStatusCondition(shown.Conditions, conditionValidated).Status)
				require.Equal(t, 1, w.applies)
				require.Equal(t, shown, w.settle())
				require.Equal(t, 1, w.applies, "it is written only when it changes")
			})
		})
	}
}

// TestDRAConfigThatIsPending is not Ready, and what was said of it before stays.
func TestDRAConfigThatIsPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDRAWorld(t, nil)
		w.object.Pending, w.object.Templates = errors.New("ConfigMap c: bad"), nil
		shown := w.settle()
		require.Equal(t, metav1.ConditionFalse, meta.FindStatusCondition(shown.Conditions, conditionReady).Status)
		require.Equal(t, "Pending", meta.FindStatusCondition(shown.Conditions, conditionValidated).Reason)
		w.object.Pending = errors.New("ConfigMap c: worse")
		require.Equal(t, shown, w.settle())
		require.Equal(t, 1, w.applies)
	})
}

// TestDRAConfigAfterTheLastNode: counts that were there go back to zero.
func TestDRAConfigAfterTheLastNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDRAWorld(t, nil)
		w.Outcomes("node n", outcomesOfPools(resourceslice.Outcome{Slices: 1}, resourceslice.Outcome{Slices: 1}))
		require.Equal(t, new(int32(2)), w.settle().ResourceSliceCount)
		w.Outcomes("node n", nil)
		shown := w.settle()
		require.Equal(t, new(int32(0)), shown.NodeCount)
		require.Equal(t, new(int32(0)), shown.ResourceSliceCount)
	})
}

// TestDRAConfigOfSomeoneElse: what another has written of a status is theirs, and kwok-dra writes the rest.
func TestDRAConfigOfSomeoneElse(t *testing.T) {
	t.Parallel()
	ours := []string{"ValidationSucceeded", "Ready", "nodeCount", "resourceSliceCount"}
	for name, test := range map[string]struct {
		fields string
		writes []string
	}{
		"nodes":              {`{"f:status":{"f:nodeCount":{}}}`, []string{"ValidationSucceeded", "Ready", "resourceSliceCount"}},
		"slices":             {`{"f:status":{"f:resourceSliceCount":{}}}`, []string{"ValidationSucceeded", "Ready", "nodeCount"}},
		"our condition":      {`{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}`, []string{"ValidationSucceeded", "nodeCount", "resourceSliceCount"}},
		"all conditions":     {`{"f:status":{"f:conditions":{}}}`, []string{"nodeCount", "resourceSliceCount"}},
		"all":                {`{"f:status":{"f:conditions":{},"f:nodeCount":{},"f:resourceSliceCount":{}}}`, nil},
		"their condition":    {`{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Mine\"}":{".":{},"f:status":{}}}}}`, ours},
		"nothing of it":      {`{"f:metadata":{"f:labels":{}}}`, ours},
		"not to be read":     {`[]`, ours},
		"nothing whatsoever": {`{}`, ours},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newDRAWorld(t, map[string]string{"someone": test.fields})
				w.Outcomes("node n", outcomesOfPools(resourceslice.Outcome{Slices: 1}, resourceslice.Outcome{Slices: 1}))
				var written []string
				for range 3 {
					shown := w.settle()
					written = nil
					for _, condition := range shown.Conditions {
						written = append(written, condition.Type)
					}
					if shown.NodeCount != nil {
						written = append(written, nodeCountField)
					}
					if shown.ResourceSliceCount != nil {
						written = append(written, sliceCountField)
					}
				}
				require.Equal(t, test.writes, written)
				require.Equal(t, min(1, len(test.writes)), w.applies)
			})
		})
	}
}

// TestDRAConfigWithForeignConditions: they stay as they are, and nothing of them is applied.
func TestDRAConfigWithForeignConditions(t *testing.T) {
	t.Parallel()
	theirs := metav1.Condition{Type: conditionReady, Status: metav1.ConditionUnknown, Reason: "Theirs"}
	source := draConfigShowing(draConfigStatus{Conditions: []metav1.Condition{theirs}, NodeCount: new(int32(7))},
		map[string]string{"someone": `{"f:status":{"f:nodeCount":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{}}}}`})
	patch := planDRAConfigStatus("", config.Acceptance{Generation: 1, Templates: []string{"a.p"}, Source: source}, status.Totals{Published: 1}, metav1.Now())
	require.NotNil(t, patch)
	planned := patch.Body["status"].(draConfigStatus)
	require.Len(t, planned.Conditions, 1)
	require.Equal(t, conditionValidated, planned.Conditions[0].Type)
	require.Nil(t, planned.NodeCount)
	require.Equal(t, new(int32(0)), planned.ResourceSliceCount)
}

// TestDRAConfigGivesWay: who has written the status before kwok-dra saw it keeps
// it, and that is no failure to be tried again.
func TestDRAConfigGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDRAWorld(t, nil)
		w.fail = apierrors.NewConflict(schema.GroupResource{Resource: "draconfigs"}, "a", errors.New("conflict with \"someone\""))
		w.settle()
		require.Equal(t, 1, w.applies)
	})
}

// TestDRAConfigOfTwoInstallations: both write under the one name, so that none gives way.
func TestDRAConfigOfTwoInstallations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDRAWorld(t, map[string]string{})
		w.Outcomes("node n", map[string]resourceslice.Outcome{"a.p": {Slices: 1, Devices: 8}})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Positive(t, w.applies)
		w.applies = 0
		for range 600 {
			w.object.Source = draConfigShowing(draConfigStatus{NodeCount: new(int32(7))}, nil)
			w.Changed()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.LessOrEqual(t, w.applies, 2)
	})
}
