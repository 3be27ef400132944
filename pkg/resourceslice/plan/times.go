package plan

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// keepTimes puts the times of the taints in the slices of a pool on those of its devices
// that say none: the API server fills in the time of a taint that has none, even if the
// taint existed before. A device may move to another slice, and after a crash be in two.
// Slices of an earlier node of that name are about other devices.
func keepTimes(devices []resourcev1.Device, owner sliceOwner, existing []*facts.Slice) []resourcev1.Device {
	known := map[string][]resourcev1.DeviceTaint{}
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
	return facts.ChangeTaints(devices, func(device string, taint *resourcev1.DeviceTaint) {
		if taint.TimeAdded == nil {
			taint.TimeAdded = earliest(taint, known[device])
		}
	})
}

// earliest is the time of a taint that is known, or nil. One with another value is
// another, as upstream (copyTaintTimeAdded in
// k8s.io/dynamic-resource-allocation/resourceslice).
func earliest(taint *resourcev1.DeviceTaint, known []resourcev1.DeviceTaint) *metav1.Time {
	var added *metav1.Time
	for _, k := range known {
		same := k.Key == taint.Key && k.Value == taint.Value && k.Effect == taint.Effect
		if same && (added == nil || k.TimeAdded.Before(added)) {
			added = k.TimeAdded.DeepCopy()
		}
	}
	return added
}
