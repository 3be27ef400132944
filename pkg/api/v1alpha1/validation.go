package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxCount bounds the devices of one group, and the counter sets. It is far
// above what nodes have, and keeps a slip of the finger from filling the API
// server.
const maxCount = 10_000

// Validate checks a defaulted template. Values that are templates are checked
// when they are rendered, and selectors of objects' states when they are
// compiled. Whether names that stand for others, and those that count makes,
// are there and unique is checked when they are expanded.
//
// The rules are those of the API server from Kubernetes 1.36 on, and the
// stricter ones where feature gates make a difference.
func (t *ResourcePoolTemplate) Validate() field.ErrorList {
	errs := validateName(t.Name)
	path, spec := field.NewPath("spec"), &t.Spec
	errs = append(errs, validateDriver(spec.Driver, path.Child("driver"))...)
	errs = append(errs, validateFakeNodes(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validateSharedWith(spec.SharedWith, path.Child("sharedWith"))...)
	errs = append(errs, validatePoolNameOf(spec, path.Child("poolName"))...)
	errs = append(errs, validateDevices(spec, path.Child("devices"))...)
	errs = append(errs, validateSharedCounters(spec.SharedCounters, path.Child("sharedCounters"))...)
	errs = append(errs, validateSlices(spec.Slices, path.Child("slices"))...)
	errs = append(errs, validateSliceLabels(spec.SliceLabels, path.Child("sliceLabels"))...)
	errs = append(errs, validatePartitionType(spec, path)...)
	errs = append(errs, validateSkipped(spec.SkipNodeOperations, path.Child("skipNodeOperations"))...)
	if spec.ClaimStatus != nil {
		errs = append(errs, spec.ClaimStatus.validate(path.Child("claimStatus"))...)
	}
	if spec.Health != "" {
		errs = append(errs, oneOf(path.Child("health"), spec.Health, HealthUnknown, HealthReport)...)
	}
	return errs
}

// Validate checks a configuration, defaulted or not. Its selectors are checked
// when they are compiled.
func (c *KwokDRAConfiguration) Validate() field.ErrorList {
	errs := validateName(c.Name)
	spec := field.NewPath("spec")
	if c.Spec.PodStatus != "" {
		errs = append(errs, oneOf(spec.Child("podStatus"), c.Spec.PodStatus, PodStatusMinimal, PodStatusFaithful)...)
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
	return subdomainForm.check(name, path)
}

func validateDriver(driver string, path *field.Path) field.ErrorList {
	if driver == "" {
		return field.ErrorList{field.Required(path, "the name of the DRA driver, for example gpu.example.com")}
	}
	return driverForm.check(driver, path)
}

func validatePoolNameOf(spec *ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	if !IsTemplate(spec.PoolName) {
		return ValidatePoolName(spec.PoolName, path)
	}
	if spec.SharedWith != nil {
		return field.ErrorList{field.Invalid(path, spec.PoolName, "must not be a template with sharedWith, since the pool is the same for all nodes")}
	}
	return nil
}

func validateDevices(spec *ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	if len(spec.Devices) == 0 {
		return field.ErrorList{field.Required(path, "give at least one device")}
	}
	perDevice := spec.SharedWith != nil && spec.SharedWith.PerDeviceNodeSelection
	var errs field.ErrorList
	for i := range spec.Devices {
		device, at := &spec.Devices[i], path.Index(i)
		errs = append(errs, validateDevice(device, at)...)
		errs = append(errs, validateNodesOf(device, perDevice, at)...)
	}
	return errs
}

func validateSlices(slices []SliceTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range slices {
		at := path.Index(i).Child("devices")
		if len(slices[i].Devices) == 0 {
			errs = append(errs, field.Required(at, "name at least one device, or a group of devices"))
		}
		for j, name := range slices[i].Devices {
			if name == "" {
				errs = append(errs, field.Required(at.Index(j), "the name of a device, or of a group of devices"))
			}
		}
	}
	return errs
}

// validateSliceLabels wants labels that can be. A value that is a template is
// seen when it is rendered.
func validateSliceLabels(labels map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := path.Key(key)
		errs = append(errs, labelKeyForm.check(key, at)...)
		if key == ManagedByLabel {
			errs = append(errs, field.Invalid(at, labels[key], "is kwok-dra's own label, which all its slices have: remove it"))
		}
		if !IsTemplate(labels[key]) {
			errs = append(errs, labelValueForm.check(labels[key], at)...)
		}
	}
	return errs
}

// IsLabelValue reports whether a text can be the value of a label.
func IsLabelValue(text string) bool {
	return labelValueForm.fits(text)
}

// validateSkipped follows the API server: who skips to prepare must skip to
// unprepare.
func validateSkipped(skipped []resourcev1.SkipNodeOperation, path *field.Path) field.ErrorList {
	const prepare, unprepare, all = resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources, resourcev1.SkipNodeOperationAll
	var errs field.ErrorList
	for i, operation := range skipped {
		errs = append(errs, oneOf(path.Index(i), operation, prepare, unprepare, all)...)
		if slices.Contains(skipped[:i], operation) {
			errs = append(errs, field.Duplicate(path.Index(i), operation))
		}
	}
	if slices.Contains(skipped, prepare) && !slices.Contains(skipped, unprepare) && !slices.Contains(skipped, all) {
		errs = append(errs, field.Invalid(path, skipped, fmt.Sprintf("must have %s with %s, or %q for all", unprepare, prepare, all)))
	}
	return errs
}

// validatePartitionType wants a string attribute of every device that consumes
// counters, in the driver's own domain with or without the domain.
func validatePartitionType(spec *ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	if spec.PartitionTypeAttribute == nil {
		return nil
	}
	name, at := *spec.PartitionTypeAttribute, path.Child("partitionTypeAttribute")
	if errs := validateFullyQualified(string(name), spec.Driver, at); len(errs) > 0 {
		return errs
	}
	if !slices.ContainsFunc(spec.Devices, DeviceTemplate.consumes) {
		return field.ErrorList{field.Invalid(at, name, "must not be given without a device that has counters, slots or consumesCounters")}
	}
	var errs field.ErrorList
	for i := range spec.Devices {
		device, devicePath := &spec.Devices[i], path.Child("devices").Index(i)
		if !device.consumes() {
			continue
		}
		errs = append(errs, validateType(device.Attributes, spec, devicePath)...)
		for j := range device.Partitions {
			attributes := device.attributesOf(&device.Partitions[j])
			errs = append(errs, validateType(attributes, spec, devicePath.Child("partitions").Index(j))...)
		}
	}
	return errs
}
