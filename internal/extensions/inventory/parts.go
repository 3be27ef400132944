package inventory

import (
	"slices"
	"strings"
)

// findParts finds the devices that are parts of others: those that draw on one counter set only.
// The whole is the device that takes most of the set. If several take as much, since one part is
// as large as the whole, it is the device whose name is a prefix of all their names.
func (k *Kind) findParts() {
	drawing := make([][]int, k.sets)
	for i := range k.draws {
		if on := k.draws[i].groups; len(on) == 1 {
			drawing[on[0].set] = append(drawing[on[0].set], i)
		}
	}
	for _, devices := range drawing {
		whole, found := k.wholeOf(devices)
		if found && k.wholes == nil {
			k.wholes = slices.Repeat([]int{-1}, len(k.free))
		}
		for _, device := range devices {
			if found && device != whole {
				k.wholes[device] = whole
			}
		}
	}
}

// wholeOf returns the device that others on its counter set are parts of.
func (k *Kind) wholeOf(devices []int) (at int, ok bool) {
	most, takes := 0.0, make([]float64, len(devices))
	for i, device := range devices {
		takes[i] = k.takenBy(device)
		most = max(most, takes[i])
	}
	var largest []int
	for i, device := range devices {
		if takes[i] == most {
			largest = append(largest, device)
		}
	}
	for _, device := range largest {
		if !slices.ContainsFunc(largest, func(other int) bool { return !strings.HasPrefix(k.free[other].Name, k.free[device].Name) }) {
			return device, true
		}
	}
	return 0, false
}

// takenBy sums up the part of each counter that a device takes.
func (k *Kind) takenBy(device int) float64 {
	sum := 0.0
	for _, need := range k.draws[device].needs {
		if total := k.counters[need.counter].total; total.Sign() > 0 {
			sum += need.amount.AsApproximateFloat64() / total.AsApproximateFloat64()
		}
	}
	return sum
}

// Whole returns the name of the device that the device at an index is a part of, or "".
func (k *Kind) Whole(device int) string {
	if k.wholes == nil || k.wholes[device] < 0 {
		return ""
	}
	return k.free[k.wholes[device]].Name
}
