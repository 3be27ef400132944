// Package validation validates the kinds of dra.kwok.x-k8s.io. In comes a defaulted object; out come
// its errors. It never reads a cluster, so that kwok-dractl validates files with the same rules.
//
// It applies the API server's own rules for ResourceSlices
// (k8s.io/kubernetes/pkg/apis/resource/validation), so that an invalid document is refused when it
// is read, rather than when a slice is published. The rules are those of Kubernetes 1.36 or later.
// If a feature gate changes a rule, the stricter one applies.
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

// maxCount limits the devices of one group, and the counter sets. It is far above what nodes have,
// and keeps a typing error from filling the API server.
const maxCount = 10_000

// ValidateResourcePoolTemplate checks a defaulted template. Other rules are checked later: values
// that are Go templates when they are rendered, selectors when they are compiled, and whether names
// exist and are unique when the devices are expanded.
func ValidateResourcePoolTemplate(t *v1alpha1.ResourcePoolTemplate) field.ErrorList {
	root := newChecker(nil)
	validateName(t.Name, root)
	spec, at := &t.Spec, root.atField("spec")
	validateDriver(spec, at.atField("driver"))
	validateDriverPod(spec, at.atField("driverPod"))
	validateFakeNodes(spec.NodeSelector, at.atField("nodeSelector"))
	validateSharedWith(spec.SharedWith, at.atField("sharedWith"))
	validatePoolName(spec, at.atField("poolName"))
	validateDevices(spec, at.atField("devices"))
	validateSharedCounters(spec.SharedCounters, at.atField("sharedCounters"))
	validateSlices(spec.Slices, at.atField("slices"))
	checkValues(at.atField("sliceLabels"), spec.SliceLabels, validateSliceLabel)
	validatePartitionType(spec, at)
	validateSkipped(spec.SkipNodeOperations, at.atField("skipNodeOperations"))
	if spec.ClaimStatus != nil {
		validateClaimStatus(spec.ClaimStatus, at.atField("claimStatus"))
	}
	if spec.ContainerEdits != nil {
		validateContainerEdits(spec.ContainerEdits, at.atField("containerEdits"))
	}
	if spec.Parameters != nil {
		validateParameters(spec.Parameters, at.atField("parameters"))
	}
	if spec.Health != "" {
		oneOf(at.atField("health"), spec.Health, v1alpha1.HealthUnknown, v1alpha1.HealthReport)
	}
	return *root.errs
}

// leastRetryInterval bounds how often a failing Pod is retried and reported.
const leastRetryInterval = time.Second

// ValidateKwokDRAConfiguration checks a configuration, defaulted or not. Its selectors are checked
// when they are compiled.
func ValidateKwokDRAConfiguration(c *v1alpha1.KwokDRAConfiguration) field.ErrorList {
	root := newChecker(nil)
	validateName(c.Name, root)
	spec := root.atField("spec")
	if c.Spec.PodStatus != "" {
		oneOf(spec.atField("podStatus"), c.Spec.PodStatus, v1alpha1.PodStatusMinimal, v1alpha1.PodStatusFaithful)
	}
	if retry := c.Spec.RetryInterval; retry != nil && retry.Duration < leastRetryInterval {
		spec.atField("retryInterval").addInvalid(retry.Duration.String(), "must be at least %s, for example 60s", leastRetryInterval)
	}
	if delay := c.Spec.BindingDelay; delay != nil && delay.Duration < 0 {
		spec.atField("bindingDelay").addInvalid(delay.Duration.String(), "must not be less than 0, for example 5s")
	}
	switch dir, at := c.Spec.PluginsDir, spec.atField("pluginsDir"); {
	case dir == "":
	case !filepath.IsAbs(dir):
		at.addInvalid(dir, "must be an absolute path, for example /run/kwok-dra")
	case len(filepath.Clean(dir)) > v1alpha1.MaxPluginsDir:
		at.addInvalid(dir, "must have at most %d characters, or the paths of sockets below it would be too long, for example /run/kwok-dra", v1alpha1.MaxPluginsDir)
	}
	if dir := c.Spec.ContainerView; dir != "" && (!filepath.IsAbs(dir) || strings.ContainsAny(dir, ":\n")) {
		spec.atField("containerView").addInvalid(dir, "must be an absolute path without colons, for example /run/kwok-dra-view")
	}
	return *root.errs
}

func validateName(name string, root checker) {
	subdomainForm.checkRequiredName(name, "give the object a name", root.atField("metadata", "name"))
}

func validatePoolName(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	switch {
	case !v1alpha1.IsTemplate(spec.PoolName):
		poolNameForm.checkName(spec.PoolName, at)
	case spec.SharedWith != nil:
		at.addInvalid(spec.PoolName, "must not be a template with sharedWith, since the pool is the same for all nodes")
	}
}

func validateDevices(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	at.requirePresence(len(spec.Devices) > 0, "give at least one device")
	perDevice := spec.SharedWith != nil && spec.SharedWith.PerDeviceNodeSelection
	for i := range spec.Devices {
		device, at := &spec.Devices[i], at.atIndex(i)
		validateDevice(device, at)
		validateNodesOf(device, perDevice, at)
	}
}

func validateSlices(slices []v1alpha1.SliceTemplate, at checker) {
	for i := range slices {
		devices := at.atIndex(i).atField("devices")
		devices.requirePresence(len(slices[i].Devices) > 0, "name at least one device, or a group of devices")
		devices.checkNoneEmpty(slices[i].Devices, "the name of a device, or of a group of devices")
	}
}

// validateSliceLabel requires a valid label. A value that is a template is checked when it is
// rendered.
func validateSliceLabel(key, value string, at checker) {
	labelKeyForm.checkName(key, at)
	at.requireThat(key != v1alpha1.ManagedByLabel, value, "is kwok-dra's own label, which all its slices have: remove it")
	if !v1alpha1.IsTemplate(value) {
		labelValueForm.checkName(value, at)
	}
}

// validateSkipped follows the API server: a driver that skips prepare must also skip unprepare.
func validateSkipped(skipped []resourcev1.SkipNodeOperation, at checker) {
	const prepare, unprepare, all = resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources, resourcev1.SkipNodeOperationAll
	checkItems(at, skipped, func(operation resourcev1.SkipNodeOperation, at checker) {
		oneOf(at, operation, prepare, unprepare, all)
	})
	if slices.Contains(skipped, prepare) && !slices.Contains(skipped, unprepare) && !slices.Contains(skipped, all) {
		at.addInvalid(skipped, "must have %s with %s, or %q for all", unprepare, prepare, all)
	}
}
