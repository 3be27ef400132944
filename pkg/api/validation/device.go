package validation

import (
	"fmt"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func validateDevice(device *v1alpha1.DeviceTemplate, path *field.Path) field.ErrorList {
	return slices.Concat(
		validateStem("device", device.Name, device.Count, path),
		validateNumbers(device.Attributes, len(device.Capacity), path),
		eachOf(path.Child("attributes"), device.Attributes, validateAttribute),
		validateCapacities(device.Capacity, isShared(device), path.Child("capacity")),
		validateTaints(device.Taints, path.Child("taints")),
		validateBinding(device, path),
		validateConsumption(device, path.Child("consumesCounters")),
		validateNodeResources(device.NodeAllocatableResources, device.Capacity, path.Child("nodeAllocatableResources")),
		validateOwnCounters(device, path),
		validatePartitions(device, path),
	)
}

func isShared(device *v1alpha1.DeviceTemplate) bool {
	return device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
}

// validateStem checks the name of a group and its count. Names that are
// templates are checked when they are rendered.
func validateStem(what, name string, count *int32, path *field.Path) field.ErrorList {
	if name == "" {
		return required(path.Child("name"), fmt.Sprintf("the name of the %s, for example gpu", what))
	}
	if errs := validateCount(count, path); len(errs) > 0 || v1alpha1.IsTemplate(name) {
		return errs
	}
	return validateEnding(name, endOf(count), path.Child("name"))
}

func validateCount(count *int32, path *field.Path) field.ErrorList {
	if count == nil || *count >= 1 && *count <= maxCount {
		return nil
	}
	return invalid(path.Child("count"), *count, fmt.Sprintf("must be between 1 and %d", maxCount))
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
func validateEnding(stem, end string, path *field.Path) field.ErrorList {
	if full := stem + end; len(full) > labelForm.max && len(stem) <= labelForm.max {
		return invalid(path, stem, fmt.Sprintf("must be at most %d characters, since it makes names such as %s of %d characters, and %d are possible",
			labelForm.max-len(end), full, len(full), labelForm.max))
	}
	ended := labelForm
	ended.holds = func(stem string) bool { return labelForm.holds(stem + end) }
	return ended.check(stem, path)
}

func validateTaints(taints []resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	errs := tooMany(path, len(taints), resourcev1.DeviceTaintsMaxLength)
	for i := range taints {
		errs = append(errs, ValidateTaint(&taints[i], path.Index(i))...)
	}
	return errs
}

// ValidateTaint applies the API server's rules for the taint of a device.
func ValidateTaint(taint *resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	return slices.Concat(
		labelKeyForm.check(taint.Key, path.Child("key")),
		labelValueForm.check(taint.Value, path.Child("value")),
		oneOf(path.Child("effect"), taint.Effect,
			resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone),
	)
}

// validateBinding wants both lists of conditions or none, with nothing in both.
func validateBinding(device *v1alpha1.DeviceTemplate, path *field.Path) field.ErrorList {
	conditions, failures := path.Child("bindingConditions"), path.Child("bindingFailureConditions")
	errs := slices.Concat(
		tooMany(conditions, len(device.BindingConditions), resourcev1.BindingConditionsMaxSize),
		each(conditions, device.BindingConditions, labelKeyForm.check),
		tooMany(failures, len(device.BindingFailureConditions), resourcev1.BindingFailureConditionsMaxSize),
		each(failures, device.BindingFailureConditions, labelKeyForm.check),
	)
	for i, name := range device.BindingFailureConditions {
		if slices.Contains(device.BindingConditions, name) {
			errs = append(errs, field.Invalid(failures.Index(i), name, "must not be one of bindingConditions as well"))
		}
	}
	switch hasConditions := len(device.BindingConditions) > 0; {
	case hasConditions && len(device.BindingFailureConditions) == 0:
		errs = append(errs, field.Required(failures, "bindingConditions need at least one, for example example.com/attach-failed"))
	case !hasConditions && len(device.BindingFailureConditions) > 0:
		errs = append(errs, field.Required(conditions, "bindingFailureConditions need at least one, for example example.com/attached"))
	}
	return errs
}
