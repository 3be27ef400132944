package plan

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// taintsIn are the taints of devices that have a time, by device. It is nil where
// there are none.
func taintsIn(devices []resourcev1.Device) map[string][]inventory.Taint {
	var all map[string][]inventory.Taint
	for i := range devices {
		var taints []inventory.Taint
		for _, taint := range devices[i].Taints {
			if taint.TimeAdded != nil {
				taints = append(taints, inventory.TaintOf(&taint))
			}
		}
		if len(taints) == 0 {
			continue
		}
		slices.SortFunc(taints, func(a, b inventory.Taint) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
		})
		if all == nil {
			all = map[string][]inventory.Taint{}
		}
		all[devices[i].Name] = taints
	}
	return all
}

// keepTimes puts the times of the taints in the slices of a pool on those of its devices
// that say none: the API server fills in the time of a taint that has none, even if the
// taint existed before. A device may move to another slice, and after a crash be in two.
// Slices of an earlier node of that name are about other devices.
func keepTimes(devices []resourcev1.Device, owner sliceOwner, existing []*Observed) []resourcev1.Device {
	known := map[string][]inventory.Taint{}
	for _, slice := range existing {
		if owner.isAnother(slice) {
			continue
		}
		for device, taints := range slice.Taints {
			known[device] = append(known[device], taints...)
		}
	}
	if len(known) == 0 {
		return devices
	}
	return changeTaints(devices, func(device string, taint *resourcev1.DeviceTaint) {
		if taint.TimeAdded == nil {
			taint.TimeAdded = earliest(taint, known[device])
		}
	})
}

// earliest is the time of a taint that is known, or nil. One with another value is
// another, as upstream (copyTaintTimeAdded in
// k8s.io/dynamic-resource-allocation/resourceslice).
func earliest(taint *resourcev1.DeviceTaint, known []inventory.Taint) *metav1.Time {
	var added *metav1.Time
	for _, k := range known {
		same := k.Key == taint.Key && k.Value == taint.Value && k.Effect == taint.Effect
		if same && (added == nil || k.TimeAdded.Before(added.Time)) {
			added = &metav1.Time{Time: k.TimeAdded}
		}
	}
	return added
}

// changeTaints returns the devices with their taints changed. They share these with
// their template, so they are copied.
func changeTaints(devices []resourcev1.Device, change func(device string, taint *resourcev1.DeviceTaint)) []resourcev1.Device {
	changed := slices.Clone(devices)
	for i := range changed {
		changed[i].Taints = slices.Clone(changed[i].Taints)
		for j := range changed[i].Taints {
			change(changed[i].Name, &changed[i].Taints[j])
		}
	}
	return changed
}
