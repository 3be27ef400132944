// Package validation validates the kinds of dra.kwok.x-k8s.io. It applies the API
// server's own rules for ResourceSlices
// (k8s.io/kubernetes/pkg/apis/resource/validation), so that a bad document is
// refused when it is read and not when a slice is published.
//
// The rules are those of Kubernetes from 1.36 on, and the stricter ones where
// feature gates make a difference.
package validation

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// maxCount bounds the devices of one group, and the counter sets. It is far
// above what nodes have, and keeps a slip of the finger from filling the API
// server.
const maxCount = 10_000

// ValidateResourcePoolTemplate checks a defaulted template. Values that are Go
// templates are checked when they are rendered, and selectors of objects' states
// when they are compiled. Whether names that stand for others, and those that
// count makes, are there and unique is checked when they are expanded.
func ValidateResourcePoolTemplate(t *v1alpha1.ResourcePoolTemplate) field.ErrorList {
	path, spec := field.NewPath("spec"), &t.Spec
	errs := slices.Concat(
		validateName(t.Name),
		validateDriver(spec.Driver, path.Child("driver")),
		validateFakeNodes(spec.NodeSelector, path.Child("nodeSelector")),
		validateSharedWith(spec.SharedWith, path.Child("sharedWith")),
		validatePoolNameOf(spec, path.Child("poolName")),
		validateDevices(spec, path.Child("devices")),
		validateSharedCounters(spec.SharedCounters, path.Child("sharedCounters")),
		validateSlices(spec.Slices, path.Child("slices")),
		eachOf(path.Child("sliceLabels"), spec.SliceLabels, validateSliceLabel),
		validatePartitionType(spec, path),
		validateSkipped(spec.SkipNodeOperations, path.Child("skipNodeOperations")),
	)
	if spec.ClaimStatus != nil {
		errs = append(errs, validateClaimStatus(spec.ClaimStatus, path.Child("claimStatus"))...)
	}
	if spec.Health != "" {
		errs = append(errs, oneOf(path.Child("health"), spec.Health, v1alpha1.HealthUnknown, v1alpha1.HealthReport)...)
	}
	return errs
}

// ValidateKwokDRAConfiguration checks a configuration, defaulted or not. Its
// selectors are checked when they are compiled.
func ValidateKwokDRAConfiguration(c *v1alpha1.KwokDRAConfiguration) field.ErrorList {
	errs := validateName(c.Name)
	spec := field.NewPath("spec")
	if c.Spec.PodStatus != "" {
		errs = append(errs, oneOf(spec.Child("podStatus"), c.Spec.PodStatus, v1alpha1.PodStatusMinimal, v1alpha1.PodStatusFaithful)...)
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
		return required(path, "give the object a name")
	}
	return subdomainForm.check(name, path)
}

func validateDriver(driver string, path *field.Path) field.ErrorList {
	if driver == "" {
		return required(path, "the name of the DRA driver, for example gpu.example.com")
	}
	return driverForm.check(driver, path)
}

func validatePoolNameOf(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	if !v1alpha1.IsTemplate(spec.PoolName) {
		return ValidatePoolName(spec.PoolName, path)
	}
	if spec.SharedWith != nil {
		return invalid(path, spec.PoolName, "must not be a template with sharedWith, since the pool is the same for all nodes")
	}
	return nil
}

func validateDevices(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	if len(spec.Devices) == 0 {
		return required(path, "give at least one device")
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

func validateSlices(slices []v1alpha1.SliceTemplate, path *field.Path) field.ErrorList {
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

// validateSliceLabel wants a label that can be. A value that is a template is
// seen when it is rendered.
func validateSliceLabel(key, value string, path *field.Path) field.ErrorList {
	errs := labelKeyForm.check(key, path)
	if key == v1alpha1.ManagedByLabel {
		errs = append(errs, field.Invalid(path, value, "is kwok-dra's own label, which all its slices have: remove it"))
	}
	if !v1alpha1.IsTemplate(value) {
		errs = append(errs, labelValueForm.check(value, path)...)
	}
	return errs
}

// validateSkipped follows the API server: who skips to prepare must skip to
// unprepare.
func validateSkipped(skipped []resourcev1.SkipNodeOperation, path *field.Path) field.ErrorList {
	const prepare, unprepare, all = resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources, resourcev1.SkipNodeOperationAll
	errs := each(path, skipped, func(operation resourcev1.SkipNodeOperation, path *field.Path) field.ErrorList {
		return oneOf(path, operation, prepare, unprepare, all)
	})
	if slices.Contains(skipped, prepare) && !slices.Contains(skipped, unprepare) && !slices.Contains(skipped, all) {
		errs = append(errs, field.Invalid(path, skipped, fmt.Sprintf("must have %s with %s, or %q for all", unprepare, prepare, all)))
	}
	return errs
}
