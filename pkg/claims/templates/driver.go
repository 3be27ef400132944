// Package templates answers for the DRA drivers that have templates: a claim shows
// what the templates of its devices say, and a plugin is up, silent or gone as the
// condition of the node says.
package templates

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Driver answers for the drivers of one node that have templates. It is for one worker.
type Driver struct {
	set    *config.Set
	node   *corev1.Node
	lookup *devices.Lookup
	slices Slices
}

// Slices is what is known of the slices that kwok-dra has published.
type Slices struct {
	// Of reports whether a driver has a pool on the node.
	Of func(driver string) (bool, error)
	// Have reports whether an allocated device is in one of them.
	Have func(node string, result *resourcev1.DeviceRequestAllocationResult) bool
}

// New makes a Driver of the templates in force.
func New(set *config.Set, node *corev1.Node, slices Slices) *Driver {
	return &Driver{set: set, node: node, lookup: devices.NewLookup(set.Templates, node), slices: slices}
}

// NamePods reports whether any template has claims name their Pods.
func NamePods(set *config.Set) bool {
	return slices.ContainsFunc(set.Templates, func(t *devices.Template) bool { return t.ClaimStatus.UsesPods })
}

// Has reports whether any template is of a driver.
func (d *Driver) Has(driver string) bool {
	return d.set.HasDriver(driver)
}

// Registered reports whether a driver has registered with the node's kubelet: those
// with templates are known by their slices.
func (d *Driver) Registered(driver string) (bool, error) {
	if !d.Has(driver) {
		return true, nil
	}
	if PluginOf(d.node) == PluginGone {
		return false, nil
	}
	return d.slices.Of(driver)
}

// Prepare fails where a plugin does not answer, or where it is not known what it would.
func (d *Driver) Prepare(claim *resourcev1.ResourceClaim) error {
	for _, result := range claim.Status.Allocation.Devices.Results {
		if err := d.unsettled(&result); err != nil && !plan.SkipsPrepare(claim, result.Driver) {
			return plan.Failed(plan.ReasonUnsettled, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
		}
		if d.Has(result.Driver) && PluginOf(d.node) == PluginSilent {
			return unavailable(result.Driver)
		}
	}
	return nil
}

// Unprepare has nothing to undo: what was prepared is in the claim alone.
func (d *Driver) Unprepare(*resourcev1.ResourceClaim) error {
	return nil
}

// unavailable is the kubelet's error for a plugin that does not answer.
func unavailable(driver string) error {
	return plan.Failed(plan.ReasonUnavailable, "NodePrepareResources: rpc error: code = Unavailable desc = connection error: "+
		"desc = \"transport: Error while dialing: dial unix /var/lib/kubelet/plugins/%s/dra.sock: connect: connection refused\"", driver)
}

// unsettled is why it is not known what the driver of a device does: kwok-dra has
// published it, no document in force makes it, and of a refused one no good version is
// known. It is nil where that is known.
func (d *Driver) unsettled(result *resourcev1.DeviceRequestAllocationResult) error {
	if len(d.set.Unsettled) == 0 || !d.slices.Have(d.node.Name, result) {
		return nil
	}
	_, err := d.lookup.Template(result)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w, until this is settled: %w", err, utilerrors.NewAggregate(d.set.Unsettled))
}

// ReportsHealth reports whether any driver reports the health of its devices.
func (d *Driver) ReportsHealth() bool {
	return slices.ContainsFunc(d.set.Templates, func(t *devices.Template) bool { return t.ReportsHealth })
}

// Health is what the kubelet would know of a device: nothing where its driver does
// not report health, or its plugin is down.
func (d *Driver) Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*plan.Health, error) {
	if err := d.unsettled(result); err != nil {
		return nil, err
	}
	if !d.Has(result.Driver) {
		return nil, nil
	}
	template, err := d.lookup.Template(result)
	if err != nil {
		return nil, err
	}
	health := &plan.Health{Reported: template.ReportsHealth}
	if health.ResourceID, err = d.resourceID(pod, claim, result, template); err != nil {
		return nil, err
	}
	health.Health, err = d.healthOf(result, template)
	return health, err
}

func (d *Driver) healthOf(result *resourcev1.DeviceRequestAllocationResult, template *devices.Template) (corev1.ResourceHealthStatus, error) {
	if !template.ReportsHealth || PluginOf(d.node) != PluginUp {
		return corev1.ResourceHealthStatusUnknown, nil
	}
	device, err := d.lookup.Device(result)
	if err != nil {
		return "", err
	}
	if devices.Healthy(device) {
		return corev1.ResourceHealthStatusHealthy, nil
	}
	return corev1.ResourceHealthStatusUnhealthy, nil
}

// resourceID is the first CDI device id that the driver gives, or else the
// device's full name.
func (d *Driver) resourceID(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, template *devices.Template) (corev1.ResourceID, error) {
	report, err := d.render(claim, result, template, []*corev1.Pod{pod})
	if err != nil {
		return "", err
	}
	if len(report.CDIDeviceIDs) > 0 {
		return corev1.ResourceID(report.CDIDeviceIDs[0]), nil
	}
	return corev1.ResourceID(result.Driver + "/" + result.Pool + "/" + result.Device), nil
}
