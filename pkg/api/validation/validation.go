// Package validation validates the kinds of dra.kwok.x-k8s.io. It applies the API
// server's own rules for ResourceSlices
// (k8s.io/kubernetes/pkg/apis/resource/validation), so that a bad document is
// refused when it is read and not when a slice is published.
//
// The rules are those of Kubernetes from 1.36 on, and the stricter ones where
// feature gates make a difference.
package validation

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	root := newChecker(nil)
	validateName(t.Name, root)
	spec, at := &t.Spec, root.child("spec")
	validateDriver(spec, at.child("driver"))
	validateDriverPod(spec, at.child("driverPod"))
	validateFakeNodes(spec.NodeSelector, at.child("nodeSelector"))
	validateSharedWith(spec.SharedWith, at.child("sharedWith"))
	validatePoolName(spec, at.child("poolName"))
	validateDevices(spec, at.child("devices"))
	validateSharedCounters(spec.SharedCounters, at.child("sharedCounters"))
	validateSlices(spec.Slices, at.child("slices"))
	eachOf(at.child("sliceLabels"), spec.SliceLabels, validateSliceLabel)
	validatePartitionType(spec, at)
	validateSkipped(spec.SkipNodeOperations, at.child("skipNodeOperations"))
	if spec.ClaimStatus != nil {
		validateClaimStatus(spec.ClaimStatus, at.child("claimStatus"))
	}
	if spec.ContainerEdits != nil {
		validateContainerEdits(spec.ContainerEdits, at.child("containerEdits"))
	}
	if spec.Parameters != nil {
		validateParameters(spec.Parameters, at.child("parameters"))
	}
	if spec.Health != "" {
		oneOf(at.child("health"), spec.Health, v1alpha1.HealthUnknown, v1alpha1.HealthReport)
	}
	return *root.errs
}

// leastRetryInterval keeps Pods that fail from being tried, and their failures from being reported, without end.
const leastRetryInterval = time.Second

// ValidateKwokDRAConfiguration checks a configuration, defaulted or not. Its
// selectors are checked when they are compiled.
func ValidateKwokDRAConfiguration(c *v1alpha1.KwokDRAConfiguration) field.ErrorList {
	root := newChecker(nil)
	validateName(c.Name, root)
	spec := root.child("spec")
	if c.Spec.PodStatus != "" {
		oneOf(spec.child("podStatus"), c.Spec.PodStatus, v1alpha1.PodStatusMinimal, v1alpha1.PodStatusFaithful)
	}
	if retry := c.Spec.RetryInterval; retry != nil && retry.Duration < leastRetryInterval {
		spec.child("retryInterval").invalid(retry.Duration.String(), "must be at least %s, for example 60s", leastRetryInterval)
	}
	if delay := c.Spec.BindingDelay; delay != nil && delay.Duration < 0 {
		spec.child("bindingDelay").invalid(delay.Duration.String(), "must not be less than 0, for example 5s")
	}
	switch dir, at := c.Spec.PluginsDir, spec.child("pluginsDir"); {
	case dir == "":
	case !filepath.IsAbs(dir):
		at.invalid(dir, "must be an absolute path, for example /run/kwok-dra")
	case len(filepath.Clean(dir)) > v1alpha1.MaxPluginsDir:
		at.invalid(dir, "must have at most %d characters, or the paths of sockets below it would be too long, for example /run/kwok-dra", v1alpha1.MaxPluginsDir)
	}
	if dir := c.Spec.ContainerView; dir != "" && (!filepath.IsAbs(dir) || strings.ContainsAny(dir, ":\n")) {
		spec.child("containerView").invalid(dir, "must be an absolute path without colons, for example /run/kwok-dra-view")
	}
	return *root.errs
}

func validateName(name string, root checker) {
	subdomainForm.require(name, "give the object a name", root.child("metadata", "name"))
}

func validatePoolName(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	switch {
	case !v1alpha1.IsTemplate(spec.PoolName):
		poolNameForm.check(spec.PoolName, at)
	case spec.SharedWith != nil:
		at.invalid(spec.PoolName, "must not be a template with sharedWith, since the pool is the same for all nodes")
	}
}

func validateDevices(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	at.needs(len(spec.Devices) > 0, "give at least one device")
	perDevice := spec.SharedWith != nil && spec.SharedWith.PerDeviceNodeSelection
	for i := range spec.Devices {
		device, at := &spec.Devices[i], at.index(i)
		validateDevice(device, at)
		validateNodesOf(device, perDevice, at)
	}
}

func validateSlices(slices []v1alpha1.SliceTemplate, at checker) {
	for i := range slices {
		devices := at.index(i).child("devices")
		devices.needs(len(slices[i].Devices) > 0, "name at least one device, or a group of devices")
		devices.nonEmpty(slices[i].Devices, "the name of a device, or of a group of devices")
	}
}

// validateSliceLabel wants a label that can be. A value that is a template is
// seen when it is rendered.
func validateSliceLabel(key, value string, at checker) {
	labelKeyForm.check(key, at)
	at.must(key != v1alpha1.ManagedByLabel, value, "is kwok-dra's own label, which all its slices have: remove it")
	if !v1alpha1.IsTemplate(value) {
		labelValueForm.check(value, at)
	}
}

// validateSkipped follows the API server: who skips to prepare must skip to
// unprepare.
func validateSkipped(skipped []resourcev1.SkipNodeOperation, at checker) {
	const prepare, unprepare, all = resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources, resourcev1.SkipNodeOperationAll
	each(at, skipped, func(operation resourcev1.SkipNodeOperation, at checker) {
		oneOf(at, operation, prepare, unprepare, all)
	})
	if slices.Contains(skipped, prepare) && !slices.Contains(skipped, unprepare) && !slices.Contains(skipped, all) {
		at.invalid(skipped, "must have %s with %s, or %q for all", unprepare, prepare, all)
	}
}
