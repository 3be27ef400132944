package validation

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func validateDevice(device *v1alpha1.DeviceTemplate, at fieldcheck.Checker) {
	validateStem("device", device.Name, device.Count, at)
	validateProperties(device, nil, at)
	taints := at.AtField("taints")
	taints.LimitItems(len(device.Taints), resourcev1.DeviceTaintsMaxLength)
	for i := range device.Taints {
		taints.AddErrors(ValidateTaint(&device.Taints[i], taints.Path.Index(i))...)
	}
	// Both lists of conditions are given or none, without a condition in both.
	conditions, failures := at.AtField("bindingConditions"), at.AtField("bindingFailureConditions")
	conditions.LimitItems(len(device.BindingConditions), resourcev1.BindingConditionsMaxSize)
	fieldcheck.CheckItems(conditions, device.BindingConditions, labelKeyForm.checkName)
	failures.LimitItems(len(device.BindingFailureConditions), resourcev1.BindingFailureConditionsMaxSize)
	fieldcheck.CheckItems(failures, device.BindingFailureConditions, labelKeyForm.checkName)
	for i, name := range device.BindingFailureConditions {
		isBoth := slices.Contains(device.BindingConditions, name)
		failures.AtIndex(i).RequireThat(!isBoth, name, "must not be one of bindingConditions as well")
	}
	hasConditions, hasFailures := len(device.BindingConditions) > 0, len(device.BindingFailureConditions) > 0
	failures.RequirePresence(hasFailures || !hasConditions, "bindingConditions need at least one, for example example.com/attach-failed")
	conditions.RequirePresence(hasConditions || !hasFailures, "bindingFailureConditions need at least one, for example example.com/attached")
	consumes := at.AtField("consumesCounters")
	hasOwn, total, included := hasOwnCounters(device), len(device.ConsumesCounters), ""
	if hasOwn {
		total, included = total+1, ", of which its own counters are one"
	}
	consumes.RequireThat(total <= maxSets, total, "a device can consume from at most %d counter sets%s", maxSets, included)
	for i, consumption := range device.ConsumesCounters {
		at, name := consumes.AtIndex(i), consumption.CounterSet
		isSame := func(other resourcev1.DeviceCounterConsumption) bool { return other.CounterSet == name }
		switch set := at.AtField("counterSet"); {
		case name == "":
			set.RequirePresence(false, "the name of one of the template's sharedCounters")
		case v1alpha1.IsTemplate(name):
		case slices.ContainsFunc(device.ConsumesCounters[:i], isSame):
			set.AddErrors(field.Duplicate(set.Path, name))
		case hasOwn && name == v1alpha1.CounterSetOf(device.Name):
			set.AddInvalid(name, "is the device's own counter set, of which it takes all: leave it out")
		default:
			labelForm.checkName(name, set)
		}
		validateCounters(consumption.Counters, at.AtField("counters"))
		groups := at.AtField("compatibilityGroups")
		groups.LimitItems(len(consumption.CompatibilityGroups), resourcev1.DeviceCompatibilityGroupsMaxSize)
		fieldcheck.CheckItems(groups, consumption.CompatibilityGroups, labelForm.checkName)
	}
	validateNodeResources(device, at.AtField("nodeAllocatableResources"))
	validateOwnCounters(device, at)
}

// validateStem checks the name of a group and its count. A name that is a template is checked when
// it is rendered.
func validateStem(what, name string, count *int32, at fieldcheck.Checker) {
	if at.AtField("name").RequirePresence(name != "", "the name of the %s, for example gpu", what) &&
		validateCount(count, maxCount, at) && !v1alpha1.IsTemplate(name) {
		validateEnding(name, endOf(count), at.AtField("name"))
	}
}

// validateCount checks a count, and reports whether it is valid.
func validateCount(count *int32, limit int32, at fieldcheck.Checker) bool {
	return count == nil || at.AtField("count").RequireThat(*count >= 1 && *count <= limit, *count, "must be between 1 and %d", limit)
}

// endOf returns the longest text that a count adds to a name.
func endOf(count *int32) string {
	if count == nil {
		return ""
	}
	return "-" + strconv.Itoa(int(*count-1))
}

// validateEnding checks names that consist of a stem and an ending, which is the longest one.
func validateEnding(stem, end string, at fieldcheck.Checker) {
	if full := stem + end; len(full) > labelForm.max && len(stem) <= labelForm.max {
		at.AddInvalid(stem, "must be at most %d characters, since it makes names such as %s of %d characters, and %d are possible",
			labelForm.max-len(end), full, len(full), labelForm.max)
		return
	}
	ended := labelForm
	ended.check = func(stem string) []string { return labelForm.check(stem + end) }
	ended.checkName(stem, at)
}

// validateProperties checks the attributes and capacities of a device or, if one is given, of its
// partition, with the API server's limits on how many there are.
func validateProperties(device *v1alpha1.DeviceTemplate, partition *v1alpha1.PartitionTemplate, at fieldcheck.Checker) {
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
	at.RequireThat(together <= maxTogether, together, "attributes and capacities must be at most %d together%s", maxTogether, inherited)
	at.RequireThat(values <= maxValues, values, "values of attributes must be at most %d in all, each element of a list counted%s", maxValues, inherited)
	fieldcheck.CheckValues(at.AtField("attributes"), own, validateAttribute)
	isShared := device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
	fieldcheck.CheckValues(at.AtField("capacity"), capacities, func(name resourcev1.QualifiedName, capacity v1alpha1.Capacity, at fieldcheck.Checker) {
		validateQualifiedName(string(name), at)
		policy := at.AtField("requestPolicy")
		policy.Forbid(capacity.RequestPolicy != nil && !isShared, "only with allowMultipleAllocations: true on the device")
		if v1alpha1.IsTemplate(capacity.Value) {
			validatePolicy(capacity.RequestPolicy, nil, policy)
		} else if value, err := suggest.ParseQuantity(capacity.Value); at.RequireThat(err == nil, capacity.Value, "%v", err) {
			validatePolicy(capacity.RequestPolicy, &value, policy)
		}
	})
}

// ValidateTaint applies the API server's rules for the taint of a device.
func ValidateTaint(taint *resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	at := fieldcheck.New(path)
	labelKeyForm.checkName(taint.Key, at.AtField("key"))
	labelValueForm.checkName(taint.Value, at.AtField("value"))
	fieldcheck.OneOf(at.AtField("effect"), taint.Effect,
		resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone)
	return at.Errors()
}

// validateNodeResources checks what a device consumes of the node's own resources.
func validateNodeResources(device *v1alpha1.DeviceTemplate, at fieldcheck.Checker) {
	fieldcheck.CheckValues(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, at fieldcheck.Checker) {
		isKnown := name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		at.RequireThat(isKnown, name, "must be cpu, memory or hugepages-<size>")
		at.RequirePresence(taken.Mapping != nil || taken.Overhead != nil, "mapping, overhead or both")
		if mapping := taken.Mapping; mapping != nil {
			key, at := mapping.CapacityKey, at.AtField("mapping")
			if at.RequireThat((key == nil) != (mapping.DeviceMultiplier == nil), mapping, "must have exactly one of capacityKey and deviceMultiplier") {
				at.AtField("deviceMultiplier").RequirePositive(mapping.DeviceMultiplier)
				at.AtField("capacityMultiplier").RequirePositive(mapping.CapacityMultiplier)
				at.RequireThat((key == nil) == (mapping.CapacityMultiplier == nil), mapping, "must have both of capacityKey and capacityMultiplier, or none")
				if key != nil {
					_, has := device.Capacity[*key]
					at.AtField("capacityKey").RequireThat(has, *key, "must be the name of a capacity of the device%s", fieldcheck.ListNames(device.Capacity))
				}
			}
		}
		if overhead, at := taken.Overhead, at.AtField("overhead"); overhead != nil {
			at.RequirePresence(overhead.PerPod != nil || overhead.PerContainer != nil, "perPod, perContainer or both")
			at.AtField("perPod").RequireNotNegative(overhead.PerPod)
			at.AtField("perContainer").RequireNotNegative(overhead.PerContainer)
		}
	})
}
