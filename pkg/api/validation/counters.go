package validation

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// validateCounters checks the counters of a set, or the part of them that a device consumes. It
// refuses negative values, which mean nothing although the API server accepts them.
func validateCounters(counters map[string]resourcev1.Counter, at checker) {
	at.requirePresence(len(counters) > 0, "give at least one counter, for example memory: {value: 80Gi}")
	at.limitItems(len(counters), maxCounters)
	checkValues(at, counters, func(name string, counter resourcev1.Counter, at checker) {
		labelForm.checkName(name, at)
		at.atField("value").notNegative(&counter.Value)
	})
}

// validateConsumption checks what a device consumes of the shared counter sets.
func validateConsumption(device *v1alpha1.DeviceTemplate, at checker) {
	hasOwn, total, included := hasOwnCounters(device), len(device.ConsumesCounters), ""
	if hasOwn {
		total, included = total+1, ", of which its own counters are one"
	}
	at.requireThat(total <= maxSets, total, "a device can consume from at most %d counter sets%s", maxSets, included)
	for i, consumption := range device.ConsumesCounters {
		at, name := at.atIndex(i), consumption.CounterSet
		isSame := func(other resourcev1.DeviceCounterConsumption) bool { return other.CounterSet == name }
		switch set := at.atField("counterSet"); {
		case name == "":
			set.addErrors(field.Required(set.path, "the name of one of the template's sharedCounters"))
		case v1alpha1.IsTemplate(name):
		case slices.ContainsFunc(device.ConsumesCounters[:i], isSame):
			set.addErrors(field.Duplicate(set.path, name))
		case hasOwn && name == v1alpha1.CounterSetOf(device.Name):
			set.addInvalid(name, "is the device's own counter set, of which it takes all: leave it out")
		default:
			labelForm.checkName(name, set)
		}
		validateCounters(consumption.Counters, at.atField("counters"))
		groups := at.atField("compatibilityGroups")
		groups.limitItems(len(consumption.CompatibilityGroups), resourcev1.DeviceCompatibilityGroupsMaxSize)
		checkItems(groups, consumption.CompatibilityGroups, labelForm.checkName)
	}
}

// validateOwnCounters checks the counters and slots that each device of a group has for itself and
// its partitions.
func validateOwnCounters(device *v1alpha1.DeviceTemplate, at checker) {
	if !hasOwnCounters(device) {
		return
	}
	before, counters := len(*at.errs), at.atField("counters")
	checkValues(counters, device.Counters, func(name string, value resource.Quantity, at checker) {
		labelForm.checkName(name, at)
		at.notNegative(&value)
	})
	total := len(device.Counters)
	if slots, at := device.Slots, at.atField("slots"); slots != nil {
		total += int(slots.Count)
		if validateCount(&slots.Count, maxCounters, at) {
			validateEnding(slots.Name, endOf(&slots.Count), at.atField("name"))
			for i := range slots.Count {
				counter := slots.Counter(i)
				_, taken := device.Counters[counter]
				at.atField("name").requireThat(!taken, slots.Name, "makes the counter %s, which counters has as well: rename one", counter)
			}
		}
	}
	switch {
	case len(*at.errs) > before:
	case total > maxCounters:
		counters.addInvalid(total, "counters and slots must be at most %d together", maxCounters)
	case !v1alpha1.IsTemplate(device.Name):
		counters.limitLength(v1alpha1.CounterSetOf(device.Name+endOf(device.Count)), labelForm.max, shorterName)
	}
}

// shorterName ends the error of a name that begins with that of a device, and is too long.
const shorterName = ": give the device a shorter name"
