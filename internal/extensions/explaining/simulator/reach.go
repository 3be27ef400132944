package simulator

import (
	"fmt"
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
	pieces       *pieces
}

// pieces are the slices of a pool.
type pieces struct {
	generation, are, wanted int64
	// twice is a name that two devices have, which makes the pool invalid.
	twice string
}

// describe says why a device of the pool cannot be had.
func (p *pieces) describe(d device) string {
	if p.twice != "" {
		return fmt.Sprintf("pool %s of driver %s is invalid, so none of its devices can be had: two of them have the name %s", d.pool, d.driver, p.twice)
	}
	return fmt.Sprintf("pool %s of driver %s is incomplete (%d of %d slices of generation %d), so none of its devices can be had until the driver has published all its slices",
		d.pool, d.driver, p.are, p.wanted, p.generation)
}

// reachableDevices returns the devices that a node can reach, from the newest generation of each
// pool.
func (n *node) reachableDevices() ([]device, error) {
	if n.devices != nil {
		return n.devices, nil
	}
	pools := newestGenerations(n.slices)
	var all []device
	for _, slice := range n.slices {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		if slice.Spec.Pool.Generation != pools[id].generation {
			continue
		}
		reached, err := devicesReached(n.object, slice)
		if err != nil {
			return nil, err
		}
		all = slices.Grow(all, len(reached))
		for _, d := range reached {
			all = append(all, device{d, id.driver, id.name, pools[id]})
		}
	}
	n.devices = all
	return all, nil
}

// devicesReached returns the devices of a slice that a node can use. Most slices are for the node or not,
// with all of their devices.
func devicesReached(node *corev1.Node, slice *resourcev1.ResourceSlice) (all []*resourcev1.Device, err error) {
	reached := false
	for i := range slice.Spec.Devices {
		if i == 0 || isTrue(slice.Spec.PerDeviceNodeSelection) {
			if reached, err = canReach(node, slice, &slice.Spec.Devices[i]); err != nil {
				return nil, err
			}
		}
		if reached {
			all = append(all, &slice.Spec.Devices[i])
		}
	}
	return all, nil
}

// newestGenerations returns what there is of the newest generation of each pool.
func newestGenerations(of []*resourcev1.ResourceSlice) map[poolID]*pieces {
	pools, names := map[poolID]*pieces{}, map[poolID]map[string]bool{}
	for _, slice := range of {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		if known := pools[id]; known == nil || slice.Spec.Pool.Generation > known.generation {
			pools[id] = &pieces{generation: slice.Spec.Pool.Generation, wanted: slice.Spec.Pool.ResourceSliceCount}
			names[id] = map[string]bool{}
		}
		pool := pools[id]
		if slice.Spec.Pool.Generation != pool.generation {
			continue
		}
		pool.are++
		for i := range slice.Spec.Devices {
			name := slice.Spec.Devices[i].Name
			if names[id][name] {
				pool.twice = name
			}
			names[id][name] = true
		}
	}
	return pools
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
	if named != "" {
		return named == node.Name, nil
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
