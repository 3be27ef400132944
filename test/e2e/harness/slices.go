package harness

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Slices are the ResourceSlices of the cluster.
type Slices struct{ API }

// SlicesOf lists the slices of a node, by name.
func (s Slices) SlicesOf(node string) []resourcev1.ResourceSlice {
	s.Helper()
	list, err := s.Client.ResourceV1().ResourceSlices().List(s.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(s, err)
	return list.Items
}

// PatchSlice patches a slice.
func (s Slices) PatchSlice(name string, kind types.PatchType, patch string) {
	s.Helper()
	_, err := s.Client.ResourceV1().ResourceSlices().Patch(s.Context(), name, kind, []byte(patch), metav1.PatchOptions{})
	require.NoError(s, err)
}

// Complete says what is missing for the node to have, of each driver, one
// complete pool with that many devices.
func (s Slices) Complete(node string, devices map[string]int) string {
	s.Helper()
	return completeNode(node, s.SlicesOf(node), devices)
}

func completeNode(node string, all []resourcev1.ResourceSlice, devices map[string]int) string {
	byDriver := map[string][]resourcev1.ResourceSlice{}
	for _, slice := range all {
		byDriver[slice.Spec.Driver] = append(byDriver[slice.Spec.Driver], slice)
	}
	if len(byDriver) != len(devices) {
		return fmt.Sprintf("node %s has slices of %d drivers, want %d", node, len(byDriver), len(devices))
	}
	for driver, want := range devices {
		if missing := CompletePool(byDriver[driver], want); missing != "" {
			return fmt.Sprintf("node %s, driver %s: %s", node, driver, missing)
		}
	}
	return ""
}

// CompletePool says what is missing for slices to be one whole pool with that many devices.
func CompletePool(pool []resourcev1.ResourceSlice, devices int) string {
	names := map[string]bool{}
	for _, slice := range pool {
		for _, device := range slice.Spec.Devices {
			names[device.Name] = true
		}
		if slice.Spec.Pool != pool[0].Spec.Pool {
			return fmt.Sprintf("slices disagree on the pool: %+v, %+v", slice.Spec.Pool, pool[0].Spec.Pool)
		}
		if int(slice.Spec.Pool.ResourceSliceCount) != len(pool) {
			return fmt.Sprintf("resourceSliceCount is %d with %d slices", slice.Spec.Pool.ResourceSliceCount, len(pool))
		}
	}
	if len(names) != devices {
		return fmt.Sprintf("%d devices, want %d", len(names), devices)
	}
	return ""
}

// Published waits for a complete pool of one driver on the node.
func (s Slices) Published(node, driver string, devices int) []resourcev1.ResourceSlice {
	s.Helper()
	var all []resourcev1.ResourceSlice
	s.Eventually(Patience, func() string {
		all = s.SlicesOf(node)
		return completeNode(node, all, map[string]int{driver: devices})
	})
	return all
}

// Retired waits until a node has no slices.
func (s Slices) Retired(node string) {
	s.Helper()
	s.Eventually(Patience, func() string {
		if n := len(s.SlicesOf(node)); n > 0 {
			return fmt.Sprintf("node %s has %d slices, want none", node, n)
		}
		return ""
	})
}

// Generation returns the newest generation among the slices of a pool.
func Generation(pool []resourcev1.ResourceSlice) int64 {
	generations := make([]int64, len(pool))
	for i := range pool {
		generations[i] = pool[i].Spec.Pool.Generation
	}
	return slices.Max(generations)
}

// DeviceNamed finds a device of a pool.
func DeviceNamed(t require.TestingT, pool []resourcev1.ResourceSlice, name string) resourcev1.Device {
	for _, slice := range pool {
		for _, device := range slice.Spec.Devices {
			if device.Name == name {
				return device
			}
		}
	}
	require.Failf(t, "no such device", "device %s is not among %v", name, DeviceNames(pool))
	return resourcev1.Device{}
}

// SlicesBy lists the slices of a driver, by name.
func (s Slices) SlicesBy(driver string) []resourcev1.ResourceSlice {
	s.Helper()
	list, err := s.Client.ResourceV1().ResourceSlices().List(s.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + driver})
	require.NoError(s, err)
	return list.Items
}

// SameSpec compares specs but for the generation, which an edit may raise.
func SameSpec(a, b resourcev1.ResourceSliceSpec) bool {
	a.Pool.Generation = b.Pool.Generation
	return apiequality.Semantic.DeepEqual(a, b)
}

// AllSlices lists the slices of all nodes.
func (s Slices) AllSlices() []resourcev1.ResourceSlice {
	s.Helper()
	list, err := s.Client.ResourceV1().ResourceSlices().List(s.Context(), metav1.ListOptions{})
	require.NoError(s, err)
	return list.Items
}

// Fabric is the driver of a pool that nodes share: the pool's name is part of it,
// so that tests that run at the same time do not see each other's devices.
func Fabric(name string) string { return name + ".example.com" }

// SharedPoolGone waits until no slice of a shared pool is left.
func (s Slices) SharedPoolGone(name string) {
	s.Helper()
	s.Eventually(Patience, func() string {
		if n := len(s.SlicesBy(Fabric(name))); n > 0 {
			return fmt.Sprintf("%s has %d slices, want none", name, n)
		}
		return ""
	})
}

// Looked has the sidecar prove, by a new node's pool, that it has seen what was
// done before.
func (h *H) Looked(name string) {
	h.Helper()
	h.Configure("looked-"+name, Template("looked-"+name, Driver, "looked-"+name, GPUs(1)))
	h.CreateNode("looked-"+name, "looked-"+name)
	h.Published("looked-"+name, Driver, 1)
}

// Pool lists the slices of a driver on a node, by name.
func (s Slices) Pool(node, driver string) []resourcev1.ResourceSlice {
	s.Helper()
	var pool []resourcev1.ResourceSlice
	for _, slice := range s.SlicesOf(node) {
		if slice.Spec.Driver == driver {
			pool = append(pool, slice)
		}
	}
	return pool
}
