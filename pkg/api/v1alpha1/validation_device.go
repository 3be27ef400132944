package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateDevice(device *DeviceTemplate, path *field.Path) field.ErrorList {
	errs := validateStem("device", device.Name, device.Count, path)
	errs = append(errs, validateNumbers(device.Attributes, len(device.Capacity), path)...)
	errs = append(errs, validateAttributes(device.Attributes, path.Child("attributes"))...)
	errs = append(errs, validateCapacities(device.Capacity, device.shared(), path.Child("capacity"))...)
	errs = append(errs, validateTaints(device.Taints, path.Child("taints"))...)
	errs = append(errs, validateBinding(device, path)...)
	errs = append(errs, validateConsumption(device, path.Child("consumesCounters"))...)
	errs = append(errs, validateNodeResources(device.NodeAllocatableResources, device.Capacity, path.Child("nodeAllocatableResources"))...)
	errs = append(errs, validateOwnCounters(device, path)...)
	return append(errs, validatePartitions(device, path)...)
}

func (d *DeviceTemplate) shared() bool {
	return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}

// validateStem checks the name of a group and its count. Names that are
// templates are checked when they are rendered.
func validateStem(what, name string, count *int32, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path.Child("name"), fmt.Sprintf("the name of the %s, for example gpu", what))}
	}
	if count != nil && (*count < 1 || *count > maxCount) {
		return field.ErrorList{field.Invalid(path.Child("count"), *count, fmt.Sprintf("must be between 1 and %d", maxCount))}
	}
	if IsTemplate(name) {
		return nil
	}
	return validateEnding(name, endOf(count), path.Child("name"))
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
		return field.ErrorList{field.Invalid(path, stem, fmt.Sprintf("must be at most %d characters, since it makes names such as %s of %d characters, and %d are possible",
			labelForm.max-len(end), full, len(full), labelForm.max))}
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
	errs := labelKeyForm.check(taint.Key, path.Child("key"))
	errs = append(errs, labelValueForm.check(taint.Value, path.Child("value"))...)
	return append(errs, oneOf(path.Child("effect"), taint.Effect,
		resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone)...)
}

// validateBinding wants both lists of conditions or none, with nothing in both.
func validateBinding(device *DeviceTemplate, path *field.Path) field.ErrorList {
	conditions, failures := path.Child("bindingConditions"), path.Child("bindingFailureConditions")
	errs := validateConditionTypes(device.BindingConditions, resourcev1.BindingConditionsMaxSize, conditions)
	errs = append(errs, validateConditionTypes(device.BindingFailureConditions, resourcev1.BindingFailureConditionsMaxSize, failures)...)
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

func validateConditionTypes(names []string, limit int, path *field.Path) field.ErrorList {
	errs := tooMany(path, len(names), limit)
	for i, name := range names {
		errs = append(errs, labelKeyForm.check(name, path.Index(i))...)
		if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

func tooMany(path *field.Path, n, limit int) field.ErrorList {
	if n <= limit {
		return nil
	}
	return field.ErrorList{field.TooMany(path, n, limit)}
}
