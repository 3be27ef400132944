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
	eachOf(at.child("attributes"), device.Attributes, validateAttribute)
	validateCapacities(device.Capacity, isShared(device), at.child("capacity"))
	at.child("taints").tooMany(len(device.Taints), resourcev1.DeviceTaintsMaxLength)
	for i := range device.Taints {
		validateTaint(&device.Taints[i], at.child("taints").index(i))
	}
	validateBinding(device, at)
	validateConsumption(device, at.child("consumesCounters"))
	validateNodeResources(device, at.child("nodeAllocatableResources"))
	validateOwnCounters(device, at)
	validatePartitions(device, at.child("partitions"))
}

func isShared(device *v1alpha1.DeviceTemplate) bool {
	return device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
}

// validateStem checks the name of a group and its count. Names that are
// templates are checked when they are rendered.
func validateStem(what, name string, count *int32, at checker) {
	if at.child("name").needs(name != "", "the name of the %s, for example gpu", what) &&
		validateCount(count, maxCount, at) && !v1alpha1.IsTemplate(name) {
		validateEnding(name, endOf(count), at.child("name"))
	}
}

// validateCount reports whether the count is good.
func validateCount(count *int32, limit int32, at checker) bool {
	return count == nil || at.child("count").must(*count >= 1 && *count <= limit, *count, "must be between 1 and %d", limit)
}

// endOf is the longest that count adds to a name.
func endOf(count *int32) string {
	if count == nil {
		return ""
	}
	return "-" + strconv.Itoa(int(*count-1))
}

// validateEnding checks names that begin with a stem and end with at most what
// is given.
func validateEnding(stem, end string, at checker) {
	if full := stem + end; len(full) > labelForm.max && len(stem) <= labelForm.max {
		at.invalid(stem, "must be at most %d characters, since it makes names such as %s of %d characters, and %d are possible",
			labelForm.max-len(end), full, len(full), labelForm.max)
		return
	}
	ended := labelForm
	ended.holds = func(stem string) bool { return labelForm.holds(stem + end) }
	ended.check(stem, at)
}

// ValidateTaint applies the API server's rules for the taint of a device.
func ValidateTaint(taint *resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	at := newChecker(path)
	validateTaint(taint, at)
	return *at.errs
}

func validateTaint(taint *resourcev1.DeviceTaint, at checker) {
	labelKeyForm.check(taint.Key, at.child("key"))
	labelValueForm.check(taint.Value, at.child("value"))
	oneOf(at.child("effect"), taint.Effect,
		resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone)
}

// validateBinding wants both lists of conditions or none, with nothing in both.
func validateBinding(device *v1alpha1.DeviceTemplate, at checker) {
	conditions, failures := at.child("bindingConditions"), at.child("bindingFailureConditions")
	conditions.tooMany(len(device.BindingConditions), resourcev1.BindingConditionsMaxSize)
	each(conditions, device.BindingConditions, labelKeyForm.check)
	failures.tooMany(len(device.BindingFailureConditions), resourcev1.BindingFailureConditionsMaxSize)
	each(failures, device.BindingFailureConditions, labelKeyForm.check)
	for i, name := range device.BindingFailureConditions {
		isBoth := slices.Contains(device.BindingConditions, name)
		failures.index(i).must(!isBoth, name, "must not be one of bindingConditions as well")
	}
	hasConditions, hasFailures := len(device.BindingConditions) > 0, len(device.BindingFailureConditions) > 0
	failures.needs(hasFailures || !hasConditions, "bindingConditions need at least one, for example example.com/attach-failed")
	conditions.needs(hasConditions || !hasFailures, "bindingFailureConditions need at least one, for example example.com/attached")
}
