package timeline

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
)

// seenSlice is what reports whether a pool is complete.
type seenSlice struct {
	driver  string
	pool    resourcev1.ResourcePool
	devices int
}

func (t *Timeline) sawSlice(slice *resourcev1.ResourceSlice) {
	if slice.Spec.NodeName == nil {
		return
	}
	node := *slice.Spec.NodeName
	t.mu.Lock()
	if t.slices[node] == nil {
		t.slices[node] = map[string]seenSlice{}
	}
	seen := seenSlice{driver: slice.Spec.Driver, pool: slice.Spec.Pool, devices: len(slice.Spec.Devices)}
	t.slices[node][slice.Name] = seen
	complete, devices := isComplete(t.slices[node], seen)
	t.mu.Unlock()
	if complete {
		t.markOnce(PoolComplete, Pool(node, slice.Spec.Driver), fmt.Sprintf("%d devices of %s", devices, slice.Spec.Driver))
	}
}

// isComplete reports whether the pool of one of a node's slices is complete at the
// slice's generation, and how many devices it has.
func isComplete(slices map[string]seenSlice, one seenSlice) (bool, int) {
	count, devices := 0, 0
	for _, slice := range slices {
		if slice.driver == one.driver && slice.pool == one.pool {
			count++
			devices += slice.devices
		}
	}
	return count == int(one.pool.ResourceSliceCount), devices
}

func (t *Timeline) missedSlice(slice *resourcev1.ResourceSlice) {
	if slice.Spec.NodeName == nil {
		return
	}
	node := *slice.Spec.NodeName
	t.mu.Lock()
	delete(t.slices[node], slice.Name)
	left := len(t.slices[node])
	t.mu.Unlock()
	if left == 0 {
		t.markOnce(SlicesGone, node, "")
	}
}
