package validation

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	// maxSets is how many counter sets a device can consume from.
	maxSets = resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice
	// maxCounters is how many counters a set has, and a device consumes of it.
	maxCounters = resourcev1.ResourceSliceMaxCountersPerCounterSet
)

// hasOwnCounters reports whether each device of the group has a counter set.
func hasOwnCounters(device *v1alpha1.DeviceTemplate) bool {
	return len(device.Counters) > 0 || device.Slots != nil
}

func validateSharedCounters(sets []v1alpha1.CounterSetTemplate, at checker) {
	for i := range sets {
		set, at := &sets[i], at.index(i)
		validateStem("counter set", set.Name, set.Count, at)
		validateCounters(set.Counters, at.child("counters"))
	}
}

// validateCounters checks the counters of a set, or what a device takes of them.
// For counters negative values have no meaning, though the API server takes them.
func validateCounters(counters map[string]resourcev1.Counter, at checker) {
	at.needs(len(counters) > 0, "give at least one counter, for example memory: {value: 80Gi}")
	at.tooMany(len(counters), maxCounters)
	eachOf(at, counters, func(name string, counter resourcev1.Counter, at checker) {
		labelForm.check(name, at)
		at.child("value").notNegative(&counter.Value)
	})
}

// validateConsumption checks what a device takes of the shared counter sets.
func validateConsumption(device *v1alpha1.DeviceTemplate, at checker) {
	total, own := len(device.ConsumesCounters), ""
	if hasOwnCounters(device) {
		total, own = total+1, ", of which its own counters are one"
	}
	at.must(total <= maxSets, total, "a device can consume from at most %d counter sets%s", maxSets, own)
	for i := range device.ConsumesCounters {
		consumption, at := &device.ConsumesCounters[i], at.index(i)
		groups := at.child("compatibilityGroups")
		validateCounterSetName(device, i, at.child("counterSet"))
		validateCounters(consumption.Counters, at.child("counters"))
		groups.tooMany(len(consumption.CompatibilityGroups), resourcev1.DeviceCompatibilityGroupsMaxSize)
		each(groups, consumption.CompatibilityGroups, labelForm.check)
	}
}

func validateCounterSetName(device *v1alpha1.DeviceTemplate, i int, at checker) {
	name := device.ConsumesCounters[i].CounterSet
	isSame := func(other resourcev1.DeviceCounterConsumption) bool { return other.CounterSet == name }
	switch {
	case name == "":
		at.required("the name of one of the template's sharedCounters")
	case v1alpha1.IsTemplate(name):
	case slices.ContainsFunc(device.ConsumesCounters[:i], isSame):
		at.duplicate(name)
	case hasOwnCounters(device) && name == v1alpha1.CounterSetOf(device.Name):
		at.invalid(name, "is the device's own counter set, of which it takes all: leave it out")
	default:
		labelForm.check(name, at)
	}
}

// validateOwnCounters checks the counters and slots that each device of a group
// has for itself and its partitions.
func validateOwnCounters(device *v1alpha1.DeviceTemplate, at checker) {
	if !hasOwnCounters(device) {
		return
	}
	before, counters := at.found(), at.child("counters")
	eachOf(counters, device.Counters, func(name string, value resource.Quantity, at checker) {
		labelForm.check(name, at)
		at.notNegative(&value)
	})
	total := len(device.Counters)
	if device.Slots != nil {
		total += int(device.Slots.Count)
		validateSlots(device, at.child("slots"))
	}
	switch {
	case at.found() > before:
	case total > maxCounters:
		counters.invalid(total, "counters and slots must be at most %d together", maxCounters)
	case !v1alpha1.IsTemplate(device.Name):
		validateOwned(device, v1alpha1.CounterSetOf(""), counters)
	}
}

// validateOwned checks the length of names that begin with those of the devices.
func validateOwned(device *v1alpha1.DeviceTemplate, suffix string, at checker) {
	name, limit := device.Name+endOf(device.Count)+suffix, labelForm.max
	at.must(len(name) <= limit, name, "must be at most %d characters, is %d: give the device a shorter name", limit, len(name))
}

func validateSlots(device *v1alpha1.DeviceTemplate, at checker) {
	slots, name := device.Slots, at.child("name")
	if !validateCount(&slots.Count, maxCounters, at) {
		return
	}
	validateEnding(slots.Name, endOf(&slots.Count), name)
	for i := range slots.Count {
		counter := slots.Counter(i)
		_, taken := device.Counters[counter]
		name.must(!taken, slots.Name, "makes the counter %s, which counters has as well: rename one", counter)
	}
}
