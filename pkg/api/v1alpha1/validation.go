package v1alpha1

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// maxCount bounds the devices of one group. It is far above what nodes have,
// and keeps a slip of the finger from filling the API server.
const maxCount = 10_000

// semver is the API server's rule for version attributes: semver.org 2.0.0
// with all three numbers.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// Validate checks a defaulted template. Values that are templates are checked
// when they are rendered, and selectors when they are compiled.
func (t *ResourcePoolTemplate) Validate() field.ErrorList {
	errs := validateName(t.Name)
	spec := field.NewPath("spec")
	errs = append(errs, validateDriver(t.Spec.Driver, spec.Child("driver"))...)
	errs = append(errs, validateNodeSelector(t.Spec.NodeSelector, spec.Child("nodeSelector"))...)
	if !IsTemplate(t.Spec.PoolName) {
		errs = append(errs, ValidatePoolName(t.Spec.PoolName, spec.Child("poolName"))...)
	}
	if t.Spec.ClaimStatus != nil {
		errs = append(errs, t.Spec.ClaimStatus.validate(spec.Child("claimStatus"))...)
	}
	if health := t.Spec.Health; health != "" && health != HealthUnknown && health != HealthReport {
		errs = append(errs, field.NotSupported(spec.Child("health"), health, []Health{HealthUnknown, HealthReport}))
	}
	return append(errs, validateDevices(t.Spec.Devices, spec.Child("devices"))...)
}

// Validate checks a configuration, defaulted or not. Its selectors are checked
// when they are compiled.
func (c *KwokDRAConfiguration) Validate() field.ErrorList {
	errs := validateName(c.Name)
	spec := field.NewPath("spec")
	switch c.Spec.PodStatus {
	case "", PodStatusMinimal, PodStatusFaithful:
	default:
		errs = append(errs, field.NotSupported(spec.Child("podStatus"), c.Spec.PodStatus, []PodStatus{PodStatusMinimal, PodStatusFaithful}))
	}
	if retry := c.Spec.RetryInterval; retry != nil && retry.Duration <= 0 {
		errs = append(errs, field.Invalid(spec.Child("retryInterval"), retry.Duration.String(), "must be more than 0, for example 60s"))
	}
	if delay := c.Spec.BindingDelay; delay != nil && delay.Duration < 0 {
		errs = append(errs, field.Invalid(spec.Child("bindingDelay"), delay.Duration.String(), "must not be less than 0, for example 5s"))
	}
	return errs
}

func validateName(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if name == "" {
		return field.ErrorList{field.Required(path, "give the object a name")}
	}
	return invalid(path, name, content.IsDNS1123Subdomain(name))
}

// validateDriver applies the rule for CSI driver names, as the API server does.
func validateDriver(driver string, path *field.Path) field.ErrorList {
	if driver == "" {
		return field.ErrorList{field.Required(path, "the name of the DRA driver, for example gpu.example.com")}
	}
	return append(tooLong(path, driver, resourcev1.DriverNameMaxLength),
		invalid(path, driver, content.IsDNS1123Subdomain(strings.ToLower(driver)))...)
}

func validateNodeSelector(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	if len(selector.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(path.Child("nodeSelectorTerms"), "give at least one term, or leave nodeSelector out to select every fake node")}
	}
	if _, err := nodeaffinity.NewNodeSelector(selector, field.WithPath(path)); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

// ValidatePoolName applies the API server's rule for pool names: DNS subdomains
// separated by slashes, at most 253 characters.
func ValidatePoolName(name string, path *field.Path) field.ErrorList {
	errs := tooLong(path, name, resourcev1.PoolNameMaxLength)
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, invalid(path, name, content.IsDNS1123Subdomain(part))...)
	}
	return errs
}

func validateDevices(devices []DeviceTemplate, path *field.Path) field.ErrorList {
	if len(devices) == 0 {
		return field.ErrorList{field.Required(path, "give at least one device")}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range devices {
		item := path.Index(i)
		problems := validateDevice(&devices[i], item)
		if len(problems) == 0 {
			problems = validateUnique(devices[i].Names(), seen, item)
		}
		errs = append(errs, problems...)
	}
	return errs
}

func validateUnique(names []string, seen map[string]bool, path *field.Path) field.ErrorList {
	for _, name := range names {
		if seen[name] {
			return field.ErrorList{field.Duplicate(path.Child("name"), name)}
		}
		seen[name] = true
	}
	return nil
}

func validateDevice(device *DeviceTemplate, path *field.Path) field.ErrorList {
	errs := validateDeviceName(device, path)
	if n := len(device.Attributes) + len(device.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		errs = append(errs, field.TooMany(path, n, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice))
	}
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		errs = append(errs, validateAttribute(name, device.Attributes[name], path.Child("attributes").Key(string(name)))...)
	}
	for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
		errs = append(errs, validateCapacity(name, device.Capacity[name], path.Child("capacity").Key(string(name)))...)
	}
	errs = append(errs, validateTaints(device.Taints, path.Child("taints"))...)
	return append(errs, validateBinding(device, path)...)
}

func validateDeviceName(device *DeviceTemplate, path *field.Path) field.ErrorList {
	name := path.Child("name")
	if device.Name == "" {
		return field.ErrorList{field.Required(name, "the name of the device, for example gpu")}
	}
	if device.Count == nil {
		return invalid(name, device.Name, content.IsDNS1123Label(device.Name))
	}
	if *device.Count < 1 || *device.Count > maxCount {
		return field.ErrorList{field.Invalid(path.Child("count"), *device.Count, fmt.Sprintf("must be between 1 and %d", maxCount))}
	}
	last := fmt.Sprintf("%s-%d", device.Name, *device.Count-1)
	return invalid(name, last, content.IsDNS1123Label(last))
}

func validateAttribute(name resourcev1.QualifiedName, attribute Attribute, path *field.Path) field.ErrorList {
	errs := validateQualifiedName(name, path)
	if attribute.problem == nil && IsTemplate(attribute.Value) {
		return errs
	}
	if _, err := attribute.Resolve(attribute.Value); err != nil {
		errs = append(errs, field.Invalid(path, attribute.Value, err.Error()))
	}
	return errs
}

func validateCapacity(name resourcev1.QualifiedName, capacity Capacity, path *field.Path) field.ErrorList {
	errs := validateQualifiedName(name, path)
	if capacity.problem == nil && IsTemplate(capacity.Value) {
		return errs
	}
	if _, err := capacity.Resolve(capacity.Value); err != nil {
		errs = append(errs, field.Invalid(path, capacity.Value, err.Error()))
	}
	return errs
}

// validateQualifiedName wants a C identifier, or a domain, a slash and a C
// identifier. The API server lets names with more slashes pass; here they are
// refused, as its own source says it should.
func validateQualifiedName(name resourcev1.QualifiedName, path *field.Path) field.ErrorList {
	domain, id, qualified := strings.Cut(string(name), "/")
	if !qualified {
		domain, id = "", string(name)
	}
	var errs field.ErrorList
	if qualified {
		errs = validateDriver(domain, path)
	}
	errs = append(errs, tooLong(path, id, resourcev1.DeviceMaxIDLength)...)
	return append(errs, invalid(path, id, content.IsCIdentifier(id))...)
}

func validateTaints(taints []resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(taints) > resourcev1.DeviceTaintsMaxLength {
		errs = append(errs, field.TooMany(path, len(taints), resourcev1.DeviceTaintsMaxLength))
	}
	for i := range taints {
		errs = append(errs, ValidateTaint(&taints[i], path.Index(i))...)
	}
	return errs
}

// ValidateTaint applies the API server's rules for the taint of a device.
func ValidateTaint(taint *resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	errs := invalid(path.Child("key"), taint.Key, validation.IsQualifiedName(taint.Key))
	errs = append(errs, invalid(path.Child("value"), taint.Value, validation.IsValidLabelValue(taint.Value))...)
	if !taintEffects[taint.Effect] {
		errs = append(errs, field.NotSupported(path.Child("effect"), taint.Effect,
			[]resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone}))
	}
	return errs
}

var taintEffects = map[resourcev1.DeviceTaintEffect]bool{
	resourcev1.DeviceTaintEffectNone:       true,
	resourcev1.DeviceTaintEffectNoSchedule: true,
	resourcev1.DeviceTaintEffectNoExecute:  true,
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
	var errs field.ErrorList
	if len(names) > limit {
		errs = append(errs, field.TooMany(path, len(names), limit))
	}
	for i, name := range names {
		errs = append(errs, invalid(path.Index(i), name, validation.IsQualifiedName(name))...)
		if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

func tooLong(path *field.Path, value string, limit int) field.ErrorList {
	if len(value) <= limit {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be at most %d characters, is %d", limit, len(value)))}
}

func invalid(path *field.Path, value string, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}
