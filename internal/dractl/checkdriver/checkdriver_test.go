package checkdriver

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	p := places{"node-0", "/p", "/r", "/k", "/c", "a.example.com", "1"}
	arguments := []string{"./driver", "--node={node}", "{plugins}:{registry}", "{kubeconfig}", "{cdi}", "{driver}-{instance}", "{other}"}
	require.Equal(t, []string{"./driver", "--node=node-0", "/p:/r", "/k", "/c", "a.example.com-1", "{other}"}, p.replacePlaceholders(arguments))
	require.Equal(t, []string{"NODE_NAME=node-0", "KUBECONFIG=/k", "PLUGINS_DIR=/p", "REGISTRY_DIR=/r", "CDI_ROOT=/c"}, p.environmentVariables())
	require.True(t, hasPlaceholder(arguments, instancePlaceholder))
	require.False(t, hasPlaceholder(arguments[:2], instancePlaceholder))
	require.NoError(t, checkPlaceholders(arguments, "a.example.com"))
	require.EqualError(t, checkPlaceholders(arguments, ""), "COMMAND has {driver}, and no name replaces it: give --driver NAME")
}

// TestStatements: each has an id of its own, and says who says so.
func TestStatements(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, s := range statements {
		require.False(t, ids[s.id], s.id)
		ids[s.id] = true
		require.NotEmpty(t, s.says, s.id)
		require.NotEmpty(t, s.source, s.id)
	}
	chosen, err := chooseStatements("^cdi")
	require.NoError(t, err)
	require.Len(t, chosen, 3)
	_, err = chooseStatements("(")
	require.ErrorContains(t, err, `parse --only "("`)
}

func report() *Report {
	s := statement{id: "stops", says: "ends", source: "KEP"}
	return &Report{Driver: "a.example.com", Output: []string{"<panic>"}, Results: []Result{
		resultOf(s, nil, 1500*time.Millisecond),
		resultOf(s, errors.New("a\nb; its last lines:\nc"), 0),
		resultOf(s, skipped("no <b>"), 0),
	}}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for format, want := range map[output.Format]string{
		output.Table: `RESULT    ID      STATEMENT   SOURCE   SEEN
ok        stops   ends        KEP
FAILED    stops   ends        KEP      a; b
skipped   stops   ends        KEP      no <b>
`,
		output.JSON: `{
    "driver": "a.example.com",
    "results": [
        {
            "outcome": "ok",
            "id": "stops",
            "statement": "ends",
            "source": "KEP",
            "seconds": 1.5
        },
        {
            "outcome": "FAILED",
            "id": "stops",
            "statement": "ends",
            "source": "KEP",
            "seen": "a\nb; its last lines:\nc",
            "seconds": 0
        },
        {
            "outcome": "skipped",
            "id": "stops",
            "statement": "ends",
            "source": "KEP",
            "seen": "no <b>",
            "seconds": 0
        }
    ],
    "output": [
        "<panic>"
    ]
}
`,
		output.JUnit: `<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="check-driver a.example.com" tests="3" failures="1" skipped="1">
  <testcase name="stops: ends" classname="a.example.com" time="1.5"></testcase>
  <testcase name="stops: ends" classname="a.example.com" time="0">
    <failure message="a; b">KEP: a&#xA;b; its last lines:&#xA;c</failure>
  </testcase>
  <testcase name="stops: ends" classname="a.example.com" time="0">
    <skipped message="no &lt;b&gt;">KEP: no &lt;b&gt;</skipped>
  </testcase>
  <system-out>&lt;panic&gt;</system-out>
</testsuite>
`,
	} {
		var out bytes.Buffer
		require.NoError(t, report().printReport(&out, format))
		require.Equal(t, want, out.String())
	}
}

var node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0", UID: "1"}}

// slice is one of a pool p with two slices, owned by the node.
func slice(name string, generation int64, devices ...string) resourcev1.ResourceSlice {
	made := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: resourcev1.ResourceSliceSpec{Pool: resourcev1.ResourcePool{Name: "p", Generation: generation, ResourceSliceCount: 2}},
	}
	for _, d := range devices {
		made.Spec.Devices = append(made.Spec.Devices, resourcev1.Device{Name: d})
	}
	return made
}

func TestIncomplete(t *testing.T) {
	t.Parallel()
	a, b := slice("a", 2, "x"), slice("b", 2, "y")
	all := newestGeneration([]resourcev1.ResourceSlice{slice("old", 1, "x"), b, a})
	require.Equal(t, []resourcev1.ResourceSlice{a, b}, all)
	require.Empty(t, findIncomplete(all, node))
	require.Equal(t, []string{"slice a: pool p has 1 slices of generation 2, and resourceSliceCount 2"}, findIncomplete(all[:1], node))
	require.Equal(t, []string{"device p/x is in slices a and c"}, findIncomplete([]resourcev1.ResourceSlice{a, slice("c", 2, "x")}, node))
	require.Empty(t, findIncomplete([]resourcev1.ResourceSlice{slice("d", 1), slice("e", 1)}, node), "a driver without devices says so by a slice without any")
	b.OwnerReferences[0].UID = "2"
	require.Equal(t, []string{"slice b: no owner reference to node node-0"}, findIncomplete([]resourcev1.ResourceSlice{a, b}, node))
}

// TestPublishesNoDevices: a driver without devices publishes what it should, and one that
// is still looking for them has time to find them.
func TestPublishesNoDevices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, two := slice("a", 1), slice("b", 1)
		client := fake.NewClientset(&one, &two)
		w := &world{}
		w.site = site{client: client, name: node.Name, node: node}
		chosen, err := chooseStatements("^publishes$")
		require.NoError(t, err)
		publishes := chosen[0].run
		require.NoError(t, publishes(t.Context(), w))
		go func() {
			time.Sleep(quiet / 2)
			late := slice("b", 2, "x") // the first of two slices of a new generation
			_, err := client.ResourceV1().ResourceSlices().Update(t.Context(), &late, metav1.UpdateOptions{})
			assert.NoError(t, err)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 2*quiet)
		defer cancel()
		require.ErrorContains(t, publishes(ctx, w), "slice b: pool p has 1 slices of generation 2, and resourceSliceCount 2")
	})
}

func TestRewritten(t *testing.T) {
	t.Parallel()
	before := []resourcev1.ResourceSlice{slice("a", 1, "x")}
	touched := slice("a", 1, "x")
	touched.ResourceVersion = "2"
	require.NoError(t, findRewritten(before, []resourcev1.ResourceSlice{touched}))
	require.EqualError(t, findRewritten(before, nil), "there were 1 slices, and now there are 0")
	require.EqualError(t, findRewritten(before, []resourcev1.ResourceSlice{slice("b", 1, "x")}), "slice a was replaced by b")
	require.EqualError(t, findRewritten(before, []resourcev1.ResourceSlice{slice("a", 2, "x")}), "slice a: the generation of pool p was 1 and is 2")
	require.EqualError(t, findRewritten(before, []resourcev1.ResourceSlice{slice("a", 1, "y")}), "slice a has changed")
}

// TestExclusive: of devices that consume the same counters, only one is for a claim.
func TestExclusive(t *testing.T) {
	t.Parallel()
	published := slice("a", 1, "whole", "half", "tainted", "shared", "other")
	devices := published.Spec.Devices
	devices[0].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0"}}
	devices[1].ConsumesCounters = devices[0].ConsumesCounters
	devices[2].Taints = []resourcev1.DeviceTaint{{Key: "a", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	devices[3].AllowMultipleAllocations = new(true)
	devices[3].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
		"all": {Value: resource.MustParse("8")}, "some": {Value: resource.MustParse("8"), RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("1"))}},
	}
	require.Equal(t, []device{{"p", "other"}, {"p", "shared"}, {"p", "whole"}}, exclusiveDevices([]resourcev1.ResourceSlice{published}))

	a := &allocator{pools: pools{shared: sharedDevices([]resourcev1.ResourceSlice{published})}}
	result := a.newAllocation(device{"p", "shared"}).Devices.Results[0]
	require.NotEmpty(t, *result.ShareID)
	require.Equal(t, map[resourcev1.QualifiedName]resource.Quantity{"all": resource.MustParse("8"), "some": resource.MustParse("1")}, result.ConsumedCapacity)
	require.Nil(t, a.newAllocation(device{"p", "other"}).Devices.Results[0].ShareID)
}

func TestAllocated(t *testing.T) {
	t.Parallel()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	claim.Status.Allocation = (&allocator{pools: pools{runner: runner{driver: "a"}}}).newAllocation(device{"p", "x"})
	good := &drav1.Device{PoolName: "p", DeviceName: "x", RequestNames: []string{request}}
	require.NoError(t, checkAllocated("a", claim, []*drav1.Device{good}))
	require.EqualError(t, checkAllocated("b", claim, []*drav1.Device{good}), "claim c: device p/x is not allocated for it")
	require.EqualError(t, checkAllocated("a", claim, []*drav1.Device{{PoolName: "p", DeviceName: "y"}}), "claim c: device p/y is not allocated for it")
	good.RequestNames = []string{"other"}
	require.EqualError(t, checkAllocated("a", claim, []*drav1.Device{good}), `claim c: device x is for request "other", which it does not have`)
}

func TestCDI(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"nvidia.com/gpu=0": true, "a/b=c": true, "k8s.gpu.nvidia.com/claim=1-gpu-0": true, "a/b=c:d.e_f": true,
		"nvidia.com/gpu": false, "gpu=0": false, "a/b=": false, "1a/b=c": false, "a/b=c-": false, "a/b/c=d": false, "": false,
	} {
		require.Equal(t, good, cdiName.MatchString(name), name)
	}
}

func TestFindGap(t *testing.T) {
	t.Parallel()
	a, b := slice("a", 1), slice("b", 1)
	for want, events := range map[string][]watch.Event{
		"":                              {{Type: watch.Added, Object: &b}, {Type: watch.Deleted, Object: &a}},
		"for a time there was no slice": {{Type: watch.Deleted, Object: &a}, {Type: watch.Added, Object: &b}},
	} {
		sent := make(chan watch.Event, len(events))
		for _, event := range events {
			sent <- event
		}
		close(sent)
		err := findGap(map[types.UID]bool{"a": true}, sent)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
}
