package slices

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// taintTimes knows when the taints of devices were added. The API server fills in
// the time of a taint that has none, even if the taint existed before.
type taintTimes map[taintKey]metav1.Time

// taintKey is a taint of a device of a pool. One with another value is another,
// as upstream (copyTaintTimeAdded in
// k8s.io/dynamic-resource-allocation/resourceslice).
type taintKey struct {
	device, key, value string
	effect             resourcev1.DeviceTaintEffect
}

func keyOf(device *resourcev1.Device, taint *resourcev1.DeviceTaint) taintKey {
	return taintKey{device.Name, taint.Key, taint.Value, taint.Effect}
}

// timesOf is nil where no device is tainted.
func timesOf(list []resourcev1.Device) taintTimes {
	var times taintTimes
	for i := range list {
		for j := range list[i].Taints {
			taint := &list[i].Taints[j]
			if taint.TimeAdded == nil {
				continue
			}
			if times == nil {
				times = taintTimes{}
			}
			times[keyOf(&list[i], taint)] = *taint.TimeAdded
		}
	}
	return times
}

// timesOfPool are the times in the slices of a pool. A device may move to
// another slice, and after a crash be in two. Slices of an earlier node of that
// name are about other devices.
func timesOfPool(h holder, existing []*Observed) taintTimes {
	times := taintTimes{}
	for _, slice := range existing {
		if h.isAnother(slice) {
			continue
		}
		for key, added := range slice.Taints {
			if known, is := times[key]; !is || added.Before(&known) {
				times[key] = added
			}
		}
	}
	return times
}

// isAnother reports whether a slice belongs to another object of the holder's name.
func (h holder) isAnother(slice *Observed) bool {
	return h.owner != nil && slices.ContainsFunc(slice.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == h.owner.Kind && owner.UID != h.uid
	})
}

// keep puts the known times on the taints of a pool that say none. The pool
// shares its taints with its template, so it is copied where there is something
// to put.
func (t taintTimes) keep(pool *devices.Pool) *devices.Pool {
	if len(t) == 0 {
		return pool
	}
	kept := *pool
	kept.Devices = t.on(pool.Devices)
	return &kept
}

func (t taintTimes) on(list []resourcev1.Device) []resourcev1.Device {
	list = slices.Clone(list)
	for i := range list {
		device := &list[i]
		device.Taints = slices.Clone(device.Taints)
		for j := range device.Taints {
			taint := &device.Taints[j]
			if added, known := t[keyOf(device, taint)]; known && taint.TimeAdded == nil {
				taint.TimeAdded = &added
			}
		}
	}
	return list
}
