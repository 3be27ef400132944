package validation

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func validateDevice(device *v1alpha1.DeviceTemplate, at checker) {
	validateStem("device", device.Name, device.Count, at)
	validateProperties(device, nil, at)
	taints := at.atField("taints")
	taints.limitItems(len(device.Taints), resourcev1.DeviceTaintsMaxLength)
	for i := range device.Taints {
		taints.addErrors(ValidateTaint(&device.Taints[i], taints.path.Index(i))...)
	}
	// Both lists of conditions are given or none, without a condition in both.
	conditions, failures := at.atField("bindingConditions"), at.atField("bindingFailureConditions")
	conditions.limitItems(len(device.BindingConditions), resourcev1.BindingConditionsMaxSize)
	checkItems(conditions, device.BindingConditions, labelKeyForm.checkName)
	failures.limitItems(len(device.BindingFailureConditions), resourcev1.BindingFailureConditionsMaxSize)
	checkItems(failures, device.BindingFailureConditions, labelKeyForm.checkName)
	for i, name := range device.BindingFailureConditions {
		isBoth := slices.Contains(device.BindingConditions, name)
		failures.atIndex(i).requireThat(!isBoth, name, "must not be one of bindingConditions as well")
	}
	hasConditions, hasFailures := len(device.BindingConditions) > 0, len(device.BindingFailureConditions) > 0
	failures.requirePresence(hasFailures || !hasConditions, "bindingConditions need at least one, for example example.com/attach-failed")
	conditions.requirePresence(hasConditions || !hasFailures, "bindingFailureConditions need at least one, for example example.com/attached")
	consumes := at.atField("consumesCounters")
	hasOwn, total, included := hasOwnCounters(device), len(device.ConsumesCounters), ""
	if hasOwn {
		total, included = total+1, ", of which its own counters are one"
	}
	consumes.requireThat(total <= maxSets, total, "a device can consume from at most %d counter sets%s", maxSets, included)
	for i, consumption := range device.ConsumesCounters {
		at, name := consumes.atIndex(i), consumption.CounterSet
		isSame := func(other resourcev1.DeviceCounterConsumption) bool { return other.CounterSet == name }
		switch set := at.atField("counterSet"); {
		case name == "":
			set.requirePresence(false, "the name of one of the template's sharedCounters")
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
	validateNodeResources(device, at.atField("nodeAllocatableResources"))
	validateOwnCounters(device, at)
}

// validateStem checks the name of a group and its count. A name that is a template is checked when
// it is rendered.
func validateStem(what, name string, count *int32, at checker) {
	if at.atField("name").requirePresence(name != "", "the name of the %s, for example gpu", what) &&
		validateCount(count, maxCount, at) && !v1alpha1.IsTemplate(name) {
		validateEnding(name, endOf(count), at.atField("name"))
	}
}

// validateCount checks a count, and reports whether it is valid.
func validateCount(count *int32, limit int32, at checker) bool {
	return count == nil || at.atField("count").requireThat(*count >= 1 && *count <= limit, *count, "must be between 1 and %d", limit)
}

// endOf returns the longest text that a count adds to a name.
func endOf(count *int32) string {
	if count == nil {
		return ""
	}
	return "-" + strconv.Itoa(int(*count-1))
}

// validateEnding checks names that consist of a stem and an ending, which is the longest one.
func validateEnding(stem, end string, at checker) {
	if full := stem + end; len(full) > labelForm.max && len(stem) <= labelForm.max {
		at.addInvalid(stem, "must be at most %d characters, since it makes names such as %s of %d characters, and %d are possible",
			labelForm.max-len(end), full, len(full), labelForm.max)
		return
	}
	ended := labelForm
	ended.check = func(stem string) []string { return labelForm.check(stem + end) }
	ended.checkName(stem, at)
}

// validateProperties checks the attributes and capacities of a device or, if one is given, of its
// partition, with the API server's limits on how many there are.
func validateProperties(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at checker) {
	const (
		maxTogether = resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice
		maxValues   = resourcev1.ResourceSliceMaxAttributeValuesPerDevice
	)
	own, all, capacities, inherited := device.Attributes, device.Attributes, device.Capacity, ""
	if partition != nil {
		own, all, capacities, inherited = partition.Attributes, attributesOf(device, partition), partition.Capacity, ", those of the device included"
	}
	together, values := len(all)+len(capacities), 0
	for _, attribute := range all {
		values++
		if _, isList := attribute.Type.Element(); isList {
			values += len(attribute.Elements()) - 1
		}
	}
	at.requireThat(together <= maxTogether, together, "attributes and capacities must be at most %d together%s", maxTogether, inherited)
	at.requireThat(values <= maxValues, values, "values of attributes must be at most %d in all, each element of a list counted%s", maxValues, inherited)
	checkValues(at.atField("attributes"), own, validateAttribute)
	isShared := device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
	checkValues(at.atField("capacity"), capacities, func(name resourcev1.QualifiedName, capacity v1alpha1.Capacity, at checker) {
		validateQualifiedName(string(name), at)
		policy := at.atField("requestPolicy")
		policy.forbid(capacity.RequestPolicy != nil && !isShared, "only with allowMultipleAllocations: true on the device")
		if v1alpha1.IsTemplate(capacity.Value) {
			validatePolicy(capacity.RequestPolicy, nil, policy)
		} else if value, err := suggest.ParseQuantity(capacity.Value); at.requireThat(err == nil, capacity.Value, "%v", err) {
			validatePolicy(capacity.RequestPolicy, &value, policy)
		}
	})
}

// ValidateTaint applies the API server's rules for the taint of a device.
func ValidateTaint(taint *resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	at := newChecker(path)
	labelKeyForm.checkName(taint.Key, at.atField("key"))
	labelValueForm.checkName(taint.Value, at.atField("value"))
	oneOf(at.atField("effect"), taint.Effect,
		resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone)
	return *at.errs
}

// validateNodeResources checks what a device consumes of the node's own resources.
func validateNodeResources(device *v1alpha1.DeviceTemplate, at checker) {
	checkValues(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, at checker) {
		isKnown := name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		at.requireThat(isKnown, name, "must be cpu, memory or hugepages-<size>")
		at.requirePresence(taken.Mapping != nil || taken.Overhead != nil, "mapping, overhead or both")
		if mapping := taken.Mapping; mapping != nil {
			key, at := mapping.CapacityKey, at.atField("mapping")
			if at.requireThat((key == nil) != (mapping.DeviceMultiplier == nil), mapping, "must have exactly one of capacityKey and deviceMultiplier") {
				at.atField("deviceMultiplier").moreThanZero(mapping.DeviceMultiplier)
				at.atField("capacityMultiplier").moreThanZero(mapping.CapacityMultiplier)
				at.requireThat((key == nil) == (mapping.CapacityMultiplier == nil), mapping, "must have both of capacityKey and capacityMultiplier, or none")
				if key != nil {
					_, has := device.Capacity[*key]
					at.atField("capacityKey").requireThat(has, *key, "must be the name of a capacity of the device%s", listNames(device.Capacity))
				}
			}
		}
		if overhead, at := taken.Overhead, at.atField("overhead"); overhead != nil {
			at.requirePresence(overhead.PerPod != nil || overhead.PerContainer != nil, "perPod, perContainer or both")
			at.atField("perPod").notNegative(overhead.PerPod)
			at.atField("perContainer").notNegative(overhead.PerContainer)
		}
	})
}
