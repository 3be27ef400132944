package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDimensions: each dimension goes through the base point, changes nothing else of it, and
// has devices for all Pods.
func TestDimensions(t *testing.T) {
	t.Parallel()
	for _, d := range dimensions {
		based := 0
		for _, value := range d.points {
			s := d.shapeAt(value)
			if s == baseShape() {
				based++
			}
			free := s.Nodes * (s.devicesOfFirst() - s.filledDevices()) * s.Shares
			require.LessOrEqual(t, s.Pods*s.devicesByClaim(), free, "%s at %d", d.name, value)
			require.Less(t, s.Sidecar, len(sidecars))
			require.LessOrEqual(t, s.filledDevices(), resourcev1.AllocationResultsMaxSize, "one claim fills a node: %s at %d", d.name, value)
		}
		require.Equal(t, 1, based, "%s has the base point among its points", d.name)
		require.GreaterOrEqual(t, len(d.points), 2, d.name)
		require.IsIncreasing(t, d.points, d.name)
	}
}

// TestSlices: all devices are in the slices of complete pools, within the API's limits.
func TestSlices(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	for _, d := range dimensions {
		for _, value := range d.points {
			s := d.shapeAt(value)
			devices, names := map[string]bool{}, map[string]bool{}
			slices := map[string]int64{}
			for _, slice := range s.newSlices(node) {
				names[slice.Name] = true
				slices[slice.Spec.Driver]++
				require.NotEqual(t, len(slice.Spec.Devices) == 0, len(slice.Spec.SharedCounters) == 0, "devices or counters")
				limit := resourcev1.ResourceSliceMaxDevices
				if s.Counters > 0 {
					limit = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
				}
				require.LessOrEqual(t, len(slice.Spec.Devices), limit)
				for _, device := range slice.Spec.Devices {
					devices[slice.Spec.Driver+device.Name] = true
					require.Len(t, device.Attributes, s.Attributes)
					require.LessOrEqual(t, len(device.Attributes)+len(device.Capacity), resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
				}
			}
			require.Len(t, devices, s.Devices, "%s at %d", d.name, value)
			require.Len(t, slices, s.Drivers)
			for _, slice := range s.newSlices(node) {
				require.Equal(t, slices[slice.Spec.Driver], slice.Spec.Pool.ResourceSliceCount)
			}
			require.Len(t, names, len(s.newSlices(node)))
		}
	}
}

// TestClaims: of alternatives only the last is to be had, and a constraint goes over all devices.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := baseShape()
	s.Alternatives, s.Selectors = 3, 2
	request := s.newClaimSpec().Devices.Requests[0]
	require.Nil(t, request.Exactly)
	require.Len(t, request.FirstAvailable, 3)
	require.Len(t, request.FirstAvailable[0].Selectors, 3)
	require.Contains(t, request.FirstAvailable[1].Selectors[2].CEL.Expression, `== "none-1"`)
	require.Len(t, request.FirstAvailable[2].Selectors, 2)

	s = baseShape()
	s.Matched = 4
	spec := s.newClaimSpec()
	require.Len(t, spec.Devices.Constraints, 1)
	require.EqualValues(t, 4, spec.Devices.Requests[0].Exactly.Count)

	s = baseShape()
	s.Filled = 90
	pod, claim, allocation := s.newFilling("node")
	require.Equal(t, "node", pod.Spec.NodeName)
	require.Equal(t, claim.Name, *pod.Spec.ResourceClaims[0].ResourceClaimName)
	require.Len(t, allocation.Devices.Results, 14)
	require.EqualValues(t, 14, claim.Spec.Devices.Requests[0].Exactly.Count)
}
