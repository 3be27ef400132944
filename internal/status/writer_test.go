package status

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// world is a Writer at work on an API server that keeps the status of templates.
type world struct {
	*Writer
	templates map[string]config.Acceptance
	writes    int
	// down has the API server fail, and busy says that not all outcomes are known.
	down, busy atomic.Bool
	events     *record.FakeRecorder
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	w := &world{templates: map[string]config.Acceptance{}, events: record.NewFakeRecorder(100)}
	for _, name := range names {
		w.templates[name] = config.Acceptance{Generation: 1, Templates: []string{name}, Source: &unstructured.Unstructured{}}
	}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("patch", "resourcepooltemplates", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		require.Equal(t, "status", patch.GetSubresource())
		w.writes++
		if w.down.Load() {
			return true, nil, errors.New("down")
		}
		var object v1alpha1.ResourcePoolTemplate
		require.NoError(t, json.Unmarshal(patch.GetPatch(), &object))
		w.show(t, patch.GetName(), &object.Status)
		return true, nil, nil
	})
	w.Writer = New(client, nil, w.events, func(string) map[string]config.Acceptance { return w.templates }, config.OwnKinds()...)
	runtest.UntilEnd(t.Context(), t, func(ctx context.Context) { w.Run(ctx, func() bool { return !w.busy.Load() }) })
	return w
}

// show has a template show a status.
func (w *world) show(t *testing.T, name string, status *v1alpha1.ResourcePoolTemplateStatus) {
	t.Helper()
	shown, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	require.NoError(t, err)
	acceptance := w.templates[name]
	acceptance.Source = &unstructured.Unstructured{Object: map[string]any{"status": shown}}
	w.templates[name] = acceptance
}

// shown is the status that a template shows.
func (w *world) shown(name string) v1alpha1.ResourcePoolTemplateStatus {
	return Shown[v1alpha1.ResourcePoolTemplateStatus](w.templates[name].Source)
}

func (w *world) settle() {
	time.Sleep(10 * passInterval)
	synctest.Wait()
}

func on(slices, devices int) map[string]resourceslice.Outcome {
	return map[string]resourceslice.Outcome{"a": {Slices: slices, Devices: devices}}
}

func TestWriterAddsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.Outcomes("node n1", on(2, 8))
		w.Outcomes("node n2", on(2, 8))
		w.Outcomes("node n3", on(0, 0))
		w.settle()
		status := w.shown("a")
		require.Equal(t, []int64{2, 4, 16}, []int64{status.Nodes, status.Slices, status.Devices})
		require.Equal(t, "published on 2 nodes, waiting on 1", status.Conditions[1].Message)
		require.Equal(t, "NoNode", w.shown("b").Conditions[1].Reason)

		w.Outcomes("node n2", nil)
		w.Outcomes("node n3", map[string]resourceslice.Outcome{"a": {Problem: errors.New("bad")}})
		w.Outcomes("node n0", map[string]resourceslice.Outcome{"a": {Problem: errors.New("worse")}})
		w.settle()
		status = w.shown("a")
		require.EqualValues(t, 1, status.Nodes)
		require.Equal(t, "node n0: worse (and so on 1 more)", status.Conditions[1].Message)
	})
}

// TestWriterWritesChangesOnly: a fleet that comes up is one write or two, and one
// that rests none.
func TestWriterWritesChangesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		for range 1000 {
			w.Outcomes("node n", on(1, 8))
		}
		w.settle()
		require.LessOrEqual(t, w.writes, 2)
		wrote := w.writes
		for range 100 {
			w.Outcomes("node n", on(1, 8))
			w.Changed()
			w.settle()
		}
		require.Equal(t, wrote, w.writes)
	})
}

// TestWriterUnselected: why nothing is selected is written once.
func TestWriterUnselected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.Outcomes("node n", map[string]resourceslice.Outcome{"b": {Slices: 1, Devices: 8}})
		w.Unselected(map[string]string{"a": "template a selects 0 of 1 nodes: x", "other": "y"})
		w.settle()
		require.Equal(t, "template a selects 0 of 1 nodes: x", w.shown("a").Conditions[1].Message)
		require.Equal(t, "published on 1 node", w.shown("b").Conditions[1].Message)
		wrote := w.writes
		for range 10 {
			w.Unselected(map[string]string{"a": "template a selects 0 of 1 nodes: x", "other": "y"})
			w.settle()
		}
		require.Equal(t, wrote, w.writes)
		w.Outcomes("node n", map[string]resourceslice.Outcome{"a": {Slices: 1, Devices: 8}})
		w.settle()
		require.Equal(t, "published on 1 node", w.shown("a").Conditions[1].Message)
	})
}

// TestWriterPutsRight what another replica has written, which led before: what is
// shown in the end is one replica's.
func TestWriterPutsRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.Outcomes("node n", on(2, 8))
		w.settle()
		status, wrote := w.shown("a"), w.writes
		w.show(t, "a", &v1alpha1.ResourcePoolTemplateStatus{Nodes: 7, Conditions: status.Conditions[:1]})
		w.Changed()
		w.settle()
		require.Equal(t, wrote+1, w.writes)
		require.Equal(t, status.Nodes, w.shown("a").Nodes)
		require.Len(t, w.shown("a").Conditions, len(status.Conditions))
		w.Changed()
		w.settle()
		require.Equal(t, wrote+1, w.writes)
	})
}

// TestWriterWaitsForOutcomes: after a restart what is shown stays until all outcomes are known, and
// later a new template waits for its first.
func TestWriterWaitsForOutcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.busy.Store(true)
		w.Outcomes("node n", on(2, 8))
		w.settle()
		require.Zero(t, w.writes)
		w.busy.Store(false)
		w.settle()
		require.EqualValues(t, 1, w.shown("a").Nodes)

		w.busy.Store(true)
		w.templates["b"] = config.Acceptance{Generation: 1, Templates: []string{"b"}, Source: &unstructured.Unstructured{}}
		w.templates["c"] = config.Acceptance{Generation: 1, Err: errors.New("bad"), Source: &unstructured.Unstructured{}}
		w.Outcomes("node m", on(2, 8))
		w.settle()
		require.EqualValues(t, 2, w.shown("a").Nodes)
		require.Empty(t, w.shown("b").Conditions)
		require.Len(t, w.shown("c").Conditions, 2)
		w.busy.Store(false)
		w.settle()
		require.Equal(t, "NoNode", w.shown("b").Conditions[1].Reason)
	})
}

// TestWriterLeavesWhatIsPending: where nothing is in force, what is shown of the newest version
// stays, and of one of which nothing is shown it is said why.
func TestWriterLeavesWhatIsPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.Outcomes("node n", on(2, 8))
		w.settle()
		before, wrote := w.shown("a"), w.writes

		object := w.templates["a"]
		object.Pending, object.Templates = errors.New("ConfigMap c: bad"), nil
		w.templates["a"] = object
		w.Changed()
		w.settle()
		require.Equal(t, before, w.shown("a"))

		object.Generation, object.Source = 2, w.templates["a"].Source
		w.templates["a"] = object
		w.Changed()
		w.settle()
		require.Equal(t, wrote+1, w.writes)
		accepted, published := w.shown("a").Conditions[0], w.shown("a").Conditions[1]
		require.Equal(t, []string{"Pending", "nothing is in force yet: ConfigMap c: bad"}, []string{accepted.Reason, accepted.Message})
		require.Equal(t, "NotAccepted", published.Reason)
	})
}

// TestWriterLeavesWhatOthersKnow: a replica that has started since a version was refused has no
// good one, and does not deny what one that has it says is published.
func TestWriterLeavesWhatOthersKnow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		object := w.templates["a"]
		object.Generation, object.Err = 2, errors.New("bad")
		w.templates["a"] = object
		w.Outcomes("node n", on(2, 8))
		w.settle()
		before, wrote := w.shown("a"), w.writes
		require.EqualValues(t, 1, before.Nodes)
		require.Equal(t, "Published", before.Conditions[1].Reason)

		object.Source, object.Templates = w.templates["a"].Source, nil
		w.templates["a"] = object
		w.Outcomes("node n", nil)
		w.settle()
		require.Equal(t, before, w.shown("a"))
		require.Equal(t, wrote, w.writes)

		object.Err = errors.New("worse")
		w.templates["a"] = object
		w.Changed()
		w.settle()
		require.Equal(t, "worse", w.shown("a").Conditions[0].Message)
		require.EqualValues(t, 1, w.shown("a").Nodes)
	})
}

func TestWriterTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.down.Store(true)
		w.Outcomes("node n", on(1, 8))
		w.settle()
		require.Equal(t, 4, w.writes, "after 0, 1, 3 and 7 s")
		require.Empty(t, w.events.Events)
		w.down.Store(false)
		w.settle()
		require.EqualValues(t, 1, w.shown("a").Nodes)
		require.Empty(t, w.events.Events)
	})
}

// A status that the API server refuses for long is told once for each object, and costs little.
func TestRefusedStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.down.Store(true)
		for range 60 {
			w.Outcomes("node n", on(1, 8))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		require.Less(t, w.writes, 3*70)
		require.Len(t, w.events.Events, 3)
		require.Equal(t, "Warning StatusFailed write status of ResourcePoolTemplate a: down", <-w.events.Events)
		w.down.Store(false)
		time.Sleep(longestRetry)
		synctest.Wait()
		require.EqualValues(t, 1, w.shown("a").Nodes)
	})
}
