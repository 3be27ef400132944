package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// ownSuffix ends the name of the counter set of a device with counters.
	ownSuffix = "-counters"
	// maxSets is how many counter sets a device can consume from.
	maxSets = resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice
	// maxCounters is how many counters a set has, and a device consumes of it.
	maxCounters = resourcev1.ResourceSliceMaxCountersPerCounterSet
)

// hasOwnCounters reports whether each device of the group has a counter set.
func (d *DeviceTemplate) hasOwnCounters() bool {
	return len(d.Counters) > 0 || d.Slots != nil
}

// consumes reports whether the devices of the group consume counters.
func (d DeviceTemplate) consumes() bool {
	return d.hasOwnCounters() || len(d.ConsumesCounters) > 0
}

func validateSharedCounters(sets []CounterSetTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range sets {
		set, at := &sets[i], path.Index(i)
		errs = append(errs, validateStem("counter set", set.Name, set.Count, at)...)
		errs = append(errs, validateCounters(set.Counters, at.Child("counters"))...)
	}
	return errs
}

// validateCounters checks the counters of a set, or what a device takes of them.
func validateCounters(counters map[string]resourcev1.Counter, path *field.Path) field.ErrorList {
	if len(counters) == 0 {
		return field.ErrorList{field.Required(path, "give at least one counter, for example memory: {value: 80Gi}")}
	}
	errs := tooMany(path, len(counters), maxCounters)
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		errs = append(errs, ValidateLabel(name, path.Key(name))...)
		errs = append(errs, notNegative(counters[name].Value, path.Key(name).Child("value"))...)
	}
	return errs
}

// notNegative is stricter than the API server for counters, for which negative
// values have no meaning.
func notNegative(quantity resource.Quantity, path *field.Path) field.ErrorList {
	if quantity.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, quantity.String(), "must not be less than 0")}
	}
	return nil
}

// validateConsumption checks what a device takes of the shared counter sets.
func validateConsumption(device *DeviceTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	total, own := len(device.ConsumesCounters), ""
	if device.hasOwnCounters() {
		total, own = total+1, ", of which its own counters are one"
	}
	if total > maxSets {
		errs = append(errs, field.Invalid(path, total, fmt.Sprintf("a device can consume from at most %d counter sets%s", maxSets, own)))
	}
	for i := range device.ConsumesCounters {
		consumption, at := &device.ConsumesCounters[i], path.Index(i)
		errs = append(errs, validateCounterSetName(device, i, at.Child("counterSet"))...)
		errs = append(errs, validateCounters(consumption.Counters, at.Child("counters"))...)
		errs = append(errs, validateGroups(consumption.CompatibilityGroups, at.Child("compatibilityGroups"))...)
	}
	return errs
}

func validateCounterSetName(device *DeviceTemplate, i int, path *field.Path) field.ErrorList {
	name := device.ConsumesCounters[i].CounterSet
	if name == "" {
		return field.ErrorList{field.Required(path, "the name of one of the template's sharedCounters")}
	}
	if IsTemplate(name) {
		return nil
	}
	for _, other := range device.ConsumesCounters[:i] {
		if other.CounterSet == name {
			return field.ErrorList{field.Duplicate(path, name)}
		}
	}
	if device.hasOwnCounters() && name == device.Name+ownSuffix {
		return field.ErrorList{field.Invalid(path, name, "is the device's own counter set, of which it takes all: leave it out")}
	}
	return ValidateLabel(name, path)
}

func validateGroups(groups []string, path *field.Path) field.ErrorList {
	errs := tooMany(path, len(groups), resourcev1.DeviceCompatibilityGroupsMaxSize)
	for i, name := range groups {
		errs = append(errs, ValidateLabel(name, path.Index(i))...)
		if slices.Contains(groups[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

// validateOwnCounters checks the counters and slots that each device of a group
// has for itself and its partitions.
func validateOwnCounters(device *DeviceTemplate, path *field.Path) field.ErrorList {
	if !device.hasOwnCounters() {
		return nil
	}
	counters := path.Child("counters")
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(device.Counters)) {
		errs = append(errs, ValidateLabel(name, counters.Key(name))...)
		errs = append(errs, notNegative(device.Counters[name], counters.Key(name))...)
	}
	errs = append(errs, validateSlots(device, path.Child("slots"))...)
	total := len(device.Counters)
	if device.Slots != nil {
		total += int(device.Slots.Count)
	}
	if total > maxCounters && len(errs) == 0 {
		errs = append(errs, field.Invalid(counters, total, fmt.Sprintf("counters and slots must be at most %d together", maxCounters)))
	}
	if len(errs) == 0 && !IsTemplate(device.Name) {
		errs = validateOwned(device, ownSuffix, counters)
	}
	return errs
}

// validateOwned checks the length of names that begin with those of the devices.
func validateOwned(device *DeviceTemplate, suffix string, path *field.Path) field.ErrorList {
	name := device.Name + endOf(device.Count) + suffix
	if len(name) <= labelForm.max {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("must be at most %d characters, is %d: give the device a shorter name", labelForm.max, len(name)))}
}

func validateSlots(device *DeviceTemplate, path *field.Path) field.ErrorList {
	slots := device.Slots
	if slots == nil {
		return nil
	}
	if slots.Count < 1 || slots.Count > maxCounters {
		return field.ErrorList{field.Invalid(path.Child("count"), slots.Count, fmt.Sprintf("must be between 1 and %d", maxCounters))}
	}
	errs := validateEnding(slots.Name, endOf(&slots.Count), path.Child("name"))
	for i := range slots.Count {
		name := fmt.Sprintf("%s-%d", slots.Name, i)
		if _, taken := device.Counters[name]; taken {
			errs = append(errs, field.Invalid(path.Child("name"), slots.Name, fmt.Sprintf("makes the counter %s, which counters has as well: rename one", name)))
		}
	}
	return errs
}

// of lists the names of a map for a message.
func of[K ~string, V any](values map[K]V) string {
	if len(values) == 0 {
		return ", which has none"
	}
	names := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		names = append(names, string(name))
	}
	return "; it has " + strings.Join(names, ", ")
}
