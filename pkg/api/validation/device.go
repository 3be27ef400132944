package validation

import (
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func validateDevice(device *v1alpha1.DeviceTemplate, at checker) {
	validateStem("device", device.Name, device.Count, at)
	validateNumbers(device.Attributes, len(device.Capacity), at)
	checkValues(at.atField("attributes"), device.Attributes, validateAttribute)
	validateCapacities(device.Capacity, isShared(device), at.atField("capacity"))
	at.atField("taints").tooMany(len(device.Taints), resourcev1.DeviceTaintsMaxLength)
	for i := range device.Taints {
		validateTaint(&device.Taints[i], at.atField("taints").atIndex(i))
	}
	validateBinding(device, at)
	validateConsumption(device, at.atField("consumesCounters"))
	validateNodeResources(device, at.atField("nodeAllocatableResources"))
	validateOwnCounters(device, at)
	validatePartitions(device, at.atField("partitions"))
}

func isShared(device *v1alpha1.DeviceTemplate) bool {
	return device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
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
	ended.holds = func(stem string) bool { return labelForm.holds(stem + end) }
	ended.checkName(stem, at)
}

// ValidateTaint applies the API server's rules for the taint of a device.
func ValidateTaint(taint *resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	at := newChecker(path)
	validateTaint(taint, at)
	return *at.errs
}

func validateTaint(taint *resourcev1.DeviceTaint, at checker) {
	labelKeyForm.checkName(taint.Key, at.atField("key"))
	labelValueForm.checkName(taint.Value, at.atField("value"))
	oneOf(at.atField("effect"), taint.Effect,
		resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone)
}

// validateBinding requires both lists of conditions or none, without a condition in both.
func validateBinding(device *v1alpha1.DeviceTemplate, at checker) {
	conditions, failures := at.atField("bindingConditions"), at.atField("bindingFailureConditions")
	conditions.tooMany(len(device.BindingConditions), resourcev1.BindingConditionsMaxSize)
	checkItems(conditions, device.BindingConditions, labelKeyForm.checkName)
	failures.tooMany(len(device.BindingFailureConditions), resourcev1.BindingFailureConditionsMaxSize)
	checkItems(failures, device.BindingFailureConditions, labelKeyForm.checkName)
	for i, name := range device.BindingFailureConditions {
		isBoth := slices.Contains(device.BindingConditions, name)
		failures.atIndex(i).requireThat(!isBoth, name, "must not be one of bindingConditions as well")
	}
	hasConditions, hasFailures := len(device.BindingConditions) > 0, len(device.BindingFailureConditions) > 0
	failures.requirePresence(hasFailures || !hasConditions, "bindingConditions need at least one, for example example.com/attach-failed")
	conditions.requirePresence(hasConditions || !hasFailures, "bindingFailureConditions need at least one, for example example.com/attached")
}
