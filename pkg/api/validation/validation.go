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
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// maxCount limits the devices of one group, and the counter sets. It is far above what nodes have,
// and keeps a typing error from filling the API server.
const maxCount = 10_000

// ValidateResourcePoolTemplate checks a defaulted template. Other rules are checked later: values
// that are Go templates when they are rendered, selectors when they are compiled, whether names exist
// and are unique when the devices are expanded, and containerEdits and parameters by the extensions that
// use them.
func ValidateResourcePoolTemplate(t *v1alpha1.ResourcePoolTemplate) field.ErrorList {
	root := fieldcheck.New(nil)
	subdomainForm.checkRequiredName(t.Name, "give the object a name", root.AtField("metadata", "name"))
	spec, at := &t.Spec, root.AtField("spec")
	validateDriver(spec, at)
	validateNodeSelector(spec.NodeSelector, false, at.AtField("nodeSelector"))
	if shared, at := spec.SharedWith, at.AtField("sharedWith"); shared != nil {
		given := 0
		for _, is := range []bool{shared.AllNodes, shared.NodeSelector != nil, shared.PerDeviceNodeSelection} {
			if is {
				given++
			}
		}
		if at.RequireThat(given == 1, shared, "must have exactly one of allNodes: true, nodeSelector and perDeviceNodeSelection: true") {
			validateNodeSelector(shared.NodeSelector, true, at.AtField("nodeSelector"))
		}
	}
	if poolName := at.AtField("poolName"); !v1alpha1.IsTemplate(spec.PoolName) {
		poolNameForm.checkName(spec.PoolName, poolName)
	} else {
		poolName.RequireThat(spec.SharedWith == nil, spec.PoolName, "must not be a template with sharedWith, since the pool is the same for all nodes")
	}
	devices := at.AtField("devices")
	devices.RequirePresence(len(spec.Devices) > 0, "give at least one device")
	for i := range spec.Devices {
		validateDevice(&spec.Devices[i], devices.AtIndex(i))
		validateNodesOf(&spec.Devices[i], spec.SharedWith, devices.AtIndex(i))
	}
	for i, set := range spec.SharedCounters {
		at := at.AtField("sharedCounters").AtIndex(i)
		validateStem("counter set", set.Name, set.Count, at)
		validateCounters(set.Counters, at.AtField("counters"))
	}
	for i, slice := range spec.Slices {
		devices := at.AtField("slices").AtIndex(i).AtField("devices")
		devices.RequirePresence(len(slice.Devices) > 0, "name at least one device, or a group of devices")
		devices.CheckNoneEmpty(slice.Devices, "the name of a device, or of a group of devices")
	}
	fieldcheck.CheckValues(at.AtField("sliceLabels"), spec.SliceLabels, func(key, value string, at fieldcheck.Checker) {
		labelKeyForm.checkName(key, at)
		at.RequireThat(key != v1alpha1.ManagedByLabel, value, "is kwok-dra's own label, which all its slices have: remove it")
		if !v1alpha1.IsTemplate(value) {
			labelValueForm.checkName(value, at)
		}
	})
	validatePartitionType(spec, at)
	const prepare, unprepare, all = resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources, resourcev1.SkipNodeOperationAll
	skipped, skips := at.AtField("skipNodeOperations"), spec.SkipNodeOperations
	fieldcheck.CheckItems(skipped, skips, func(operation resourcev1.SkipNodeOperation, at fieldcheck.Checker) {
		fieldcheck.OneOf(at, operation, prepare, unprepare, all)
	})
	if slices.Contains(skips, prepare) && !slices.Contains(skips, unprepare) && !slices.Contains(skips, all) { // as the API server
		skipped.AddInvalid(skips, "must have %s with %s, or %q for all", unprepare, prepare, all)
	}
	validateClaimStatus(spec.ClaimStatus, at.AtField("claimStatus"))
	if spec.Health != "" {
		fieldcheck.OneOf(at.AtField("health"), spec.Health, v1alpha1.HealthUnknown, v1alpha1.HealthReport)
	}
	return root.Errors()
}

// validateDriver checks the name of the driver, and which Pods run its plugin. A name that is a
// template is checked when it is rendered.
func validateDriver(spec *v1alpha1.ResourcePoolTemplateSpec, at fieldcheck.Checker) {
	if driver := at.AtField("driver"); !v1alpha1.IsTemplate(spec.Driver) {
		driverForm.checkRequiredName(spec.Driver, "the name of the DRA driver, for example gpu.example.com", driver)
	} else {
		driver.RequireThat(spec.DriverPod != nil, spec.Driver, "must be a DNS subdomain; it may be a template only with driverPod, whose Pod it reads")
	}
	pods, at := spec.DriverPod, at.AtField("driverPod")
	if pods == nil {
		return
	}
	at.Forbid(spec.SharedWith != nil, "not with sharedWith: the Pod on a node is for the node's own pool; remove one of the two")
	if pods.Namespace != "" {
		labelForm.checkName(pods.Namespace, at.AtField("namespace"))
	}
	if pods.Container != "" {
		labelForm.checkName(pods.Container, at.AtField("container"))
	}
	selector := at.AtField("selector")
	if selector.RequirePresence(len(pods.Selector.MatchLabels)+len(pods.Selector.MatchExpressions) > 0,
		"matchLabels, matchExpressions or both, as in spec.selector of the driver's DaemonSet; an empty one would select every Pod") {
		selector.AddErrors(metav1validation.ValidateLabelSelector(&pods.Selector, metav1validation.LabelSelectorValidationOptions{}, selector.Path)...)
	}
}

// leastRetryInterval bounds how often a failing Pod is retried and reported.
const leastRetryInterval = time.Second

// ValidateKwokDRAConfiguration checks a configuration, defaulted or not. Its selectors are checked
// when they are compiled.
func ValidateKwokDRAConfiguration(c *v1alpha1.KwokDRAConfiguration) field.ErrorList {
	root := fieldcheck.New(nil)
	subdomainForm.checkRequiredName(c.Name, "give the object a name", root.AtField("metadata", "name"))
	spec := root.AtField("spec")
	if c.Spec.PodStatus != "" {
		fieldcheck.OneOf(spec.AtField("podStatus"), c.Spec.PodStatus, v1alpha1.PodStatusMinimal, v1alpha1.PodStatusFaithful)
	}
	if retry := c.Spec.RetryInterval; retry != nil && retry.Duration < leastRetryInterval {
		spec.AtField("retryInterval").AddInvalid(retry.Duration.String(), "must be at least %s, for example 60s", leastRetryInterval)
	}
	if delay := c.Spec.BindingDelay; delay != nil && delay.Duration < 0 {
		spec.AtField("bindingDelay").AddInvalid(delay.Duration.String(), "must not be less than 0, for example 5s")
	}
	if dir, at := c.Spec.PluginsDir, spec.AtField("pluginsDir"); dir != "" && at.RequireThat(filepath.IsAbs(dir), dir, "must be an absolute path, for example /run/kwok-dra") {
		at.RequireThat(len(filepath.Clean(dir)) <= v1alpha1.MaxPluginsDir, dir,
			"must have at most %d characters, or the paths of sockets below it would be too long, for example /run/kwok-dra", v1alpha1.MaxPluginsDir)
	}
	if dir := c.Spec.ContainerView; dir != "" && (!filepath.IsAbs(dir) || strings.ContainsAny(dir, ":\n")) {
		spec.AtField("containerView").AddInvalid(dir, "must be an absolute path without colons, for example /run/kwok-dra-view")
	}
	return root.Errors()
}
