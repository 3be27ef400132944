package simulator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
)

// device is a device that a node can reach.
type device struct {
	*resourcev1.Device

	driver, pool string
	// complete reports whether all slices of its pool are there.
	complete bool
}

// reachableDevices returns the devices that a node can reach, from the newest generation of each
// pool.
func (n *node) reachableDevices() ([]device, error) {
	if n.devices != nil {
		return n.devices, nil
	}
	newest, count := newestGenerations(n.slices)
	var all []device
	for _, slice := range n.slices {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		if slice.Spec.Pool.Generation != newest[id] {
			continue
		}
		complete := count[id] == slice.Spec.Pool.ResourceSliceCount
		for i := range slice.Spec.Devices {
			reached, err := canReach(n.object, slice, &slice.Spec.Devices[i])
			if err != nil {
				return nil, err
			}
			if reached {
				all = append(all, device{&slice.Spec.Devices[i], id.driver, id.name, complete})
			}
		}
	}
	n.devices = all
	return all, nil
}

// newestGenerations returns the newest generation of each pool, and how many slices have it.
func newestGenerations(of []*resourcev1.ResourceSlice) (newest, count map[poolID]int64) {
	newest, count = map[poolID]int64{}, map[poolID]int64{}
	for _, slice := range of {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		if known, found := newest[id]; !found || slice.Spec.Pool.Generation > known {
			newest[id], count[id] = slice.Spec.Pool.Generation, 0
		}
		if slice.Spec.Pool.Generation == newest[id] {
			count[id]++
		}
	}
	return newest, count
}

// canReach reports whether a node can use a device of a slice.
func canReach(node *corev1.Node, slice *resourcev1.ResourceSlice, device *resourcev1.Device) (bool, error) {
	name, everywhere, selector := slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector
	if isTrue(slice.Spec.PerDeviceNodeSelection) {
		name, everywhere, selector = device.NodeName, device.AllNodes, device.NodeSelector
	}
	named := ""
	if name != nil {
		named = *name
	}
	return structured.NodeMatches(everything, node, named, isTrue(everywhere), selector)
}

// isShareable reports whether several requests may have the device.
func (d device) isShareable() bool { return isTrue(d.AllowMultipleAllocations) }

// toleratesTaint reports whether a taint of a device does not keep the request away.
func (a *alternative) toleratesTaint(taint resourcev1.DeviceTaint) bool {
	if taint.Effect != resourcev1.DeviceTaintEffectNoSchedule && taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return true
	}
	return slices.ContainsFunc(a.Tolerations, func(toleration resourcev1.DeviceToleration) bool {
		return resourceclaim.ToleratesTaint(toleration, taint)
	})
}

func isTrue(value *bool) bool { return value != nil && *value }
