package plan

import (
	"cmp"
	"slices"
	"time"

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
				taints = append(taints, inventory.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect, TimeAdded: taint.TimeAdded.Time})
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

// taintTimes are the times at which taints of devices were added. The API server fills
// in the time of a taint that has none, even if the taint existed before.
type taintTimes map[deviceTaint]time.Time

// deviceTaint is a taint of a device, without a time. One with another value is
// another, as upstream (copyTaintTimeAdded in
// k8s.io/dynamic-resource-allocation/resourceslice).
type deviceTaint struct {
	device string
	taint  inventory.Taint
}

// taintTimesOf are the times in the slices of a pool. A device may move to another
// slice, and after a crash be in two. Slices of an earlier node of that name are about
// other devices.
func taintTimesOf(owner sliceOwner, existing []*Observed) taintTimes {
	times := taintTimes{}
	for _, slice := range existing {
		if owner.isAnother(slice) {
			continue
		}
		for device, taints := range slice.Taints {
			for _, taint := range taints {
				added := taint.TimeAdded
				taint.TimeAdded = time.Time{}
				key := deviceTaint{device, taint}
				if known, ok := times[key]; !ok || added.Before(known) {
					times[key] = added
				}
			}
		}
	}
	return times
}

// on puts the known times on the taints that say none. Devices share their taints with
// their template, so they are copied where there is something to put.
func (t taintTimes) on(devices []resourcev1.Device) []resourcev1.Device {
	if len(t) == 0 {
		return devices
	}
	devices = slices.Clone(devices)
	for i := range devices {
		device := &devices[i]
		device.Taints = slices.Clone(device.Taints)
		for j := range device.Taints {
			taint := &device.Taints[j]
			added, known := t[deviceTaint{device.Name, inventory.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}}]
			if known && taint.TimeAdded == nil {
				taint.TimeAdded = &metav1.Time{Time: added}
			}
		}
	}
	return devices
}
