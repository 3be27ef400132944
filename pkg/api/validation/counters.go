package validation

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	// maxSets limits the counter sets that a device consumes from.
	maxSets = resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice
	// maxCounters limits the counters of a set, and those that a device consumes of it.
	maxCounters = resourcev1.ResourceSliceMaxCountersPerCounterSet
)

// hasOwnCounters reports whether each device of the group has a counter set.
func hasOwnCounters(device *v1alpha1.DeviceTemplate) bool {
	return len(device.Counters) > 0 || device.Slots != nil
}

func validateSharedCounters(sets []v1alpha1.CounterSetTemplate, at checker) {
	for i := range sets {
		set, at := &sets[i], at.atIndex(i)
		validateStem("counter set", set.Name, set.Count, at)
		validateCounters(set.Counters, at.atField("counters"))
	}
}

// validateCounters checks the counters of a set, or the part of them that a device consumes. It
// refuses negative values, which mean nothing although the API server accepts them.
func validateCounters(counters map[string]resourcev1.Counter, at checker) {
	at.requirePresence(len(counters) > 0, "give at least one counter, for example memory: {value: 80Gi}")
	at.tooMany(len(counters), maxCounters)
	checkValues(at, counters, func(name string, counter resourcev1.Counter, at checker) {
		labelForm.checkName(name, at)
		at.atField("value").notNegative(&counter.Value)
	})
}

// validateConsumption checks what a device consumes of the shared counter sets.
func validateConsumption(device *v1alpha1.DeviceTemplate, at checker) {
	total, own := len(device.ConsumesCounters), ""
	if hasOwnCounters(device) {
		total, own = total+1, ", of which its own counters are one"
	}
	at.requireThat(total <= maxSets, total, "a device can consume from at most %d counter sets%s", maxSets, own)
	for i := range device.ConsumesCounters {
		consumption, at := &device.ConsumesCounters[i], at.atIndex(i)
		groups := at.atField("compatibilityGroups")
		validateCounterSetName(device, i, at.atField("counterSet"))
		validateCounters(consumption.Counters, at.atField("counters"))
		groups.tooMany(len(consumption.CompatibilityGroups), resourcev1.DeviceCompatibilityGroupsMaxSize)
		checkItems(groups, consumption.CompatibilityGroups, labelForm.checkName)
	}
}

func validateCounterSetName(device *v1alpha1.DeviceTemplate, i int, at checker) {
	name := device.ConsumesCounters[i].CounterSet
	isSame := func(other resourcev1.DeviceCounterConsumption) bool { return other.CounterSet == name }
	switch {
	case name == "":
		at.addRequired("the name of one of the template's sharedCounters")
	case v1alpha1.IsTemplate(name):
	case slices.ContainsFunc(device.ConsumesCounters[:i], isSame):
		at.addDuplicate(name)
	case hasOwnCounters(device) && name == v1alpha1.CounterSetOf(device.Name):
		at.addInvalid(name, "is the device's own counter set, of which it takes all: leave it out")
	default:
		labelForm.checkName(name, at)
	}
}

// validateOwnCounters checks the counters and slots that each device of a group has for itself and
// its partitions.
func validateOwnCounters(device *v1alpha1.DeviceTemplate, at checker) {
	if !hasOwnCounters(device) {
		return
	}
	before, counters := at.countErrors(), at.atField("counters")
	checkValues(counters, device.Counters, func(name string, value resource.Quantity, at checker) {
		labelForm.checkName(name, at)
		at.notNegative(&value)
	})
	total := len(device.Counters)
	if device.Slots != nil {
		total += int(device.Slots.Count)
		validateSlots(device, at.atField("slots"))
	}
	switch {
	case at.countErrors() > before:
	case total > maxCounters:
		counters.addInvalid(total, "counters and slots must be at most %d together", maxCounters)
	case !v1alpha1.IsTemplate(device.Name):
		validateOwned(device, v1alpha1.CounterSetOf(""), counters)
	}
}

// validateOwned checks the length of names that begin with those of the devices.
func validateOwned(device *v1alpha1.DeviceTemplate, suffix string, at checker) {
	name, limit := device.Name+endOf(device.Count)+suffix, labelForm.max
	at.requireThat(len(name) <= limit, name, "must be at most %d characters, is %d: give the device a shorter name", limit, len(name))
}

func validateSlots(device *v1alpha1.DeviceTemplate, at checker) {
	slots, name := device.Slots, at.atField("name")
	if !validateCount(&slots.Count, maxCounters, at) {
		return
	}
	validateEnding(slots.Name, endOf(&slots.Count), name)
	for i := range slots.Count {
		counter := slots.Counter(i)
		_, taken := device.Counters[counter]
		name.requireThat(!taken, slots.Name, "makes the counter %s, which counters has as well: rename one", counter)
	}
}
