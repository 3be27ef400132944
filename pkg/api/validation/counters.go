package validation

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

func validateSharedCounters(sets []v1alpha1.CounterSetTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range sets {
		set, at := &sets[i], path.Index(i)
		errs = append(errs, validateStem("counter set", set.Name, set.Count, at)...)
		errs = append(errs, validateCounters(set.Counters, at.Child("counters"))...)
	}
	return errs
}

// validateCounters checks the counters of a set, or what a device takes of them.
// For counters negative values have no meaning, though the API server takes them.
func validateCounters(counters map[string]resourcev1.Counter, path *field.Path) field.ErrorList {
	if len(counters) == 0 {
		return required(path, "give at least one counter, for example memory: {value: 80Gi}")
	}
	errs := tooMany(path, len(counters), maxCounters)
	return append(errs, eachOf(path, counters, func(name string, counter resourcev1.Counter, path *field.Path) field.ErrorList {
		return append(ValidateLabel(name, path), notNegative(&counter.Value, path.Child("value"))...)
	})...)
}

// validateConsumption checks what a device takes of the shared counter sets.
func validateConsumption(device *v1alpha1.DeviceTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	total, own := len(device.ConsumesCounters), ""
	if hasOwnCounters(device) {
		total, own = total+1, ", of which its own counters are one"
	}
	if total > maxSets {
		errs = invalid(path, total, fmt.Sprintf("a device can consume from at most %d counter sets%s", maxSets, own))
	}
	for i := range device.ConsumesCounters {
		consumption, at := &device.ConsumesCounters[i], path.Index(i)
		groups := at.Child("compatibilityGroups")
		errs = slices.Concat(errs,
			validateCounterSetName(device, i, at.Child("counterSet")),
			validateCounters(consumption.Counters, at.Child("counters")),
			tooMany(groups, len(consumption.CompatibilityGroups), resourcev1.DeviceCompatibilityGroupsMaxSize),
			each(groups, consumption.CompatibilityGroups, ValidateLabel),
		)
	}
	return errs
}

func validateCounterSetName(device *v1alpha1.DeviceTemplate, i int, path *field.Path) field.ErrorList {
	name := device.ConsumesCounters[i].CounterSet
	isSame := func(other resourcev1.DeviceCounterConsumption) bool { return other.CounterSet == name }
	switch {
	case name == "":
		return required(path, "the name of one of the template's sharedCounters")
	case v1alpha1.IsTemplate(name):
		return nil
	case slices.ContainsFunc(device.ConsumesCounters[:i], isSame):
		return field.ErrorList{field.Duplicate(path, name)}
	case hasOwnCounters(device) && name == v1alpha1.CounterSetOf(device.Name):
		return invalid(path, name, "is the device's own counter set, of which it takes all: leave it out")
	}
	return ValidateLabel(name, path)
}

// validateOwnCounters checks the counters and slots that each device of a group
// has for itself and its partitions.
func validateOwnCounters(device *v1alpha1.DeviceTemplate, path *field.Path) field.ErrorList {
	if !hasOwnCounters(device) {
		return nil
	}
	counters := path.Child("counters")
	errs := eachOf(counters, device.Counters, func(name string, value resource.Quantity, path *field.Path) field.ErrorList {
		return append(ValidateLabel(name, path), notNegative(&value, path)...)
	})
	errs = append(errs, validateSlots(device, path.Child("slots"))...)
	if len(errs) > 0 {
		return errs
	}
	total := len(device.Counters)
	if device.Slots != nil {
		total += int(device.Slots.Count)
	}
	if total > maxCounters {
		return invalid(counters, total, fmt.Sprintf("counters and slots must be at most %d together", maxCounters))
	}
	if v1alpha1.IsTemplate(device.Name) {
		return nil
	}
	return validateOwned(device, v1alpha1.CounterSetOf(""), counters)
}

// validateOwned checks the length of names that begin with those of the devices.
func validateOwned(device *v1alpha1.DeviceTemplate, suffix string, path *field.Path) field.ErrorList {
	name := device.Name + endOf(device.Count) + suffix
	if len(name) <= labelForm.max {
		return nil
	}
	return invalid(path, name, fmt.Sprintf("must be at most %d characters, is %d: give the device a shorter name", labelForm.max, len(name)))
}

func validateSlots(device *v1alpha1.DeviceTemplate, path *field.Path) field.ErrorList {
	slots := device.Slots
	if slots == nil {
		return nil
	}
	if slots.Count < 1 || slots.Count > maxCounters {
		return invalid(path.Child("count"), slots.Count, fmt.Sprintf("must be between 1 and %d", maxCounters))
	}
	errs := validateEnding(slots.Name, endOf(&slots.Count), path.Child("name"))
	for i := range slots.Count {
		name := slots.Counter(i)
		if _, taken := device.Counters[name]; taken {
			errs = append(errs, field.Invalid(path.Child("name"), slots.Name, fmt.Sprintf("makes the counter %s, which counters has as well: rename one", name)))
		}
	}
	return errs
}
