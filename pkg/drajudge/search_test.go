package drajudge

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/dynamic-resource-allocation/structured"
)

var (
	worlds     = flag.Uint64("worlds", 200, "how many random worlds TestSearchAgrees makes")
	firstWorld = flag.Uint64("first-world", 0, "the seed of its first world")
)

// TestSearchAgrees: in random small worlds the search and upstream's allocator find devices for the same Pods on the same
// nodes, but for what is known.
func TestSearchAgrees(t *testing.T) {
	t.Parallel()
	outcomes := map[string]int{}
	for seed := *firstWorld; seed < *firstWorld+*worlds; seed++ {
		w := &randomWorld{rand.New(rand.NewPCG(seed, 2)), newStory()}
		w.update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"}}})
		w.publish()
		observer := NewObserver(Options{})
		for _, event := range w.history {
			require.Empty(t, observer.Observe(t.Context(), event))
		}
		for i := range 6 {
			claims := []*resourcev1.ResourceClaim{w.claim(2 * i), w.claim(2*i + 1)}[:1+w.IntN(2)]
			node := w.node(observer)
			allocator, err := structured.NewAllocator(t.Context(), allocatorFeatures, observer.holders.allocatedState(), classLister{observer.supply}, observer.supply.taintedSlices(), observer.cel)
			require.NoError(t, err)
			byUpstream, err := allocator.Allocate(t.Context(), node, claims)
			bySearch, isUnclear := searchDevices(t.Context(), observer, node, claims, new(searchLimit))
			isFound, isFoundBySearch := err == nil && len(byUpstream) == len(claims), bySearch != nil
			switch {
			case isFound == isFoundBySearch:
				outcomes[fmt.Sprintf("both say %t", isFound)]++
			case isUnclear:
				outcomes["the search gives up"]++
			case isFoundBySearch && err != nil:
				outcomes["the allocator gives up"]++
			case isFoundBySearch && slices.ContainsFunc(bySearch, func(a resourcev1.AllocationResult) bool { return chargesAdmin(observer, &a) }):
				outcomes["the allocator charges admin access"]++
			case isFoundBySearch && isWatchedFirst(bySearch):
				outcomes["the allocator keeps a device from claims after one with admin access"]++
			default:
				outcomes["unknown"]++
				t.Errorf("seed %d, Pod %d: the allocator says %t, the search %t: %v %v", seed, i, isFound, isFoundBySearch, &place{node, claims, byUpstream}, &place{node, claims, bySearch})
			}
			w.take(t, observer, claims, byUpstream)
		}
	}
	for outcome, count := range outcomes {
		t.Logf("%6d %s", count, outcome)
	}
	require.Greater(t, outcomes["both say true"], int(*worlds))
	require.Greater(t, outcomes["both say false"], int(*worlds)/2)
}

// TestSearchIsUnclear: the search says when it does not know, and leaves the world as it was.
func TestSearchIsUnclear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tries     int
		groups    []string
		count     int64
		found     bool
		isUnclear bool
	}{
		"found":                {tries: 100, count: 2, found: true},
		"too few devices":      {tries: 100, count: 4},
		"too few tries":        {tries: 4, count: 2, isUnclear: true},
		"compatibility groups": {tries: 100, groups: []string{"a"}, count: 2, isUnclear: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slice, counters := sliceOf(gpus(3)...), sliceOf()
			for i := range slice.Spec.Devices {
				slice.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
					CounterSet: "card", CompatibilityGroups: c.groups, Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("1")}},
				}}
			}
			counters.Name, counters.Spec.SharedCounters = "counters", []resourcev1.CounterSet{{Name: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("3")}}}}
			slice.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = 2, 2
			s := newStory()
			s.create(slice, counters)
			observer := NewObserver(Options{})
			for _, event := range s.history {
				require.Empty(t, observer.Observe(t.Context(), event))
			}
			found, isUnclear := searchDevices(t.Context(), observer, observer.supply.nodes["node-1"], []*resourcev1.ResourceClaim{claimWith("a", requestFor("r", c.count))}, &c.tries)
			require.Equal(t, c.found, found != nil)
			require.Equal(t, c.isUnclear, isUnclear)
			require.Empty(t, observer.holders)
		})
	}
}

// take allocates devices, so that later claims find less.
func (w *randomWorld) take(t *testing.T, observer *Observer, claims []*resourcev1.ResourceClaim, allocations []resourcev1.AllocationResult) {
	t.Helper()
	for i := range allocations {
		claim := claims[i]
		for j := range allocations[i].Devices.Results {
			if result := &allocations[i].Devices.Results[j]; result.ShareID != nil {
				result.ShareID = new(types.UID(fmt.Sprintf("%s-%d", claim.Name, j)))
			}
		}
		observer.Observe(t.Context(), Event{Type: watch.Added, Object: claim.DeepCopy()})
		claim.Status.Allocation = &allocations[i]
		observer.Observe(t.Context(), Event{Type: watch.Modified, Object: claim})
	}
}

// isWatchedFirst reports whether a claim has admin access to a device that a later claim of the Pod gets. Upstream's allocator
// then takes the device for used.
func isWatchedFirst(allocations []resourcev1.AllocationResult) bool {
	watched := map[deviceID]bool{}
	for i := range allocations {
		results := allocations[i].Devices.Results
		for j := range results {
			if !isTrue(results[j].AdminAccess) && watched[deviceOf(&results[j])] {
				return true
			}
		}
		for j := range results {
			if isTrue(results[j].AdminAccess) {
				watched[deviceOf(&results[j])] = true
			}
		}
	}
	return false
}
