// Package templates answers for the DRA drivers that have templates: a claim shows
// what the templates of its devices say, and a plugin is up, silent or gone as the
// condition of the node says.
package templates

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// Driver answers for the drivers of one node that have templates. It is for one worker.
type Driver struct {
	// Lookup finds the templates and the devices of allocated devices.
	Lookup *devices.Lookup

	set    *config.Set
	node   *corev1.Node
	slices Slices
	bound  devices.Bound
	// except reports whether a driver that has templates is a real one on this node.
	except func(driver string) bool
}

// Slices is what is known of the slices that kwok-dra has published.
type Slices struct {
	// Of reports whether a driver has a pool on the node. A *plan.Need says that this is to be read.
	Of func(driver string) (bool, error)
	// Have reports whether an allocated device is in one of them.
	Have func(node string, result *resourcev1.DeviceRequestAllocationResult) bool
}

// New makes a Driver of the templates in force, and of the driver Pods on the node, if
// there are any.
func New(set *config.Set, node *corev1.Node, slices Slices, pods devices.Pods) *Driver {
	bound := devices.Bind(set.Templates, node, pods)
	return &Driver{set: set, node: node, Lookup: devices.NewLookup(bound.Claimed(), node), slices: slices, bound: bound}
}

// NamePods reports whether any template has claims name their Pods.
func NamePods(set *config.Set) bool {
	return slices.ContainsFunc(set.Templates, func(t *devices.Template) bool { return t.ClaimStatus.UsesPods })
}

// Except leaves drivers alone that are real ones on this node.
func (d *Driver) Except(isReal func(driver string) bool) *Driver {
	d.except = isReal
	return d
}

// Has reports whether any template is of a driver.
func (d *Driver) Has(driver string) bool {
	return d.set.HasDriver(driver) && (d.except == nil || !d.except(driver))
}

// Registered reports whether a driver has registered with the node's kubelet: those
// with templates are known by their slices.
func (d *Driver) Registered(driver string) (bool, error) {
	if !d.Has(driver) {
		return true, nil
	}
	switch d.pluginState(driver) {
	case lifecycle.PluginGone:
		return false, nil
	case lifecycle.PluginSilent:
		return true, nil
	}
	return d.slices.Of(driver)
}

// pluginState is the state of a driver's plugin, by the condition of the node and by the
// driver Pod, if it has one.
func (d *Driver) pluginState(driver string) lifecycle.Plugin {
	state := lifecycle.PluginOf(d.node)
	down, isDown := d.bound.Down[driver]
	switch {
	case state == lifecycle.PluginGone, isDown && !down.Registered():
		return lifecycle.PluginGone
	case isDown:
		return lifecycle.PluginSilent
	case slices.ContainsFunc(d.bound.Templates, func(t *devices.Template) bool { return t.Driver == driver }):
		return state
	case slices.ContainsFunc(slices.Concat(d.bound.Absent, d.bound.Unknown), func(t *devices.Template) bool { return t.MayBeOf(driver) }):
		return lifecycle.PluginGone
	}
	return state
}

// Prepare fails where a plugin does not answer, or refuses parameters, or where it is not
// known what it would do.
func (d *Driver) Prepare(claims []*resourcev1.ResourceClaim) (plan.Answer, error) {
	for _, claim := range claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			if err := d.checkSettled(&result); err != nil && !plan.SkipsPrepare(claim, result.Driver) {
				return plan.Answered, plan.Failed(plan.ReasonUnsettled, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
			}
			if d.Has(result.Driver) && d.pluginState(result.Driver) == lifecycle.PluginSilent {
				return plan.Answered, plan.Unavailable(result.Driver)
			}
			if err := d.checkParameters(claim, &result); err != nil {
				return plan.Answered, err
			}
		}
	}
	return plan.Answered, nil
}

// checkSettled is why it is not known what the driver of a device does: kwok-dra has
// published it, no document in force makes it, and of a refused one no good version is
// known. It is nil where that is known.
func (d *Driver) checkSettled(result *resourcev1.DeviceRequestAllocationResult) error {
	if len(d.set.Unsettled) == 0 || !d.slices.Have(d.node.Name, result) {
		return nil
	}
	if _, err := d.Lookup.Template(result); err != nil {
		return fmt.Errorf("%w, until this is settled: %w", err, utilerrors.NewAggregate(d.set.Unsettled))
	}
	return nil
}

// Entries are what a claim is to show: of each device whose driver has a template what
// the template says, and nothing of others, or of those that are not asked to prepare.
func (d *Driver) Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*plan.Entries, error) {
	want := &plan.Entries{Claim: claim}
	seen := sets.New[facts.DeviceID]()
	for _, result := range claim.Status.Allocation.Devices.Results {
		id := facts.ResultID(&result)
		if !d.Has(result.Driver) || plan.SkipsPrepare(claim, result.Driver) || seen.Has(id) {
			continue
		}
		seen.Insert(id)
		template, err := d.Lookup.Template(&result)
		if err != nil {
			return nil, cannotRender(claim, err)
		}
		if !template.ClaimStatus.Writes() {
			continue
		}
		report, err := d.renderReport(claim, &result, template, pods)
		if err != nil {
			return nil, cannotRender(claim, err)
		}
		if !template.ClaimStatus.Ready && report.Data == nil && report.NetworkData == nil {
			continue
		}
		want.Devices = append(want.Devices, newEntry(&result, template, report))
		want.NamePods = want.NamePods || template.ClaimStatus.UsesPods
	}
	return want, nil
}

func cannotRender(claim *resourcev1.ResourceClaim, err error) error {
	return plan.Failed(plan.ReasonTemplate, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
}

func newEntry(result *resourcev1.DeviceRequestAllocationResult, template *devices.Template, report *devices.Report) resourcev1.AllocatedDeviceStatus {
	entry := facts.EntryFor(result)
	entry.Data, entry.NetworkData = report.Data, report.NetworkData
	if template.ClaimStatus.Ready { // AllocatedDeviceStatus asks for this of a driver that has configured the device
		entry.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Prepared", Message: "device is prepared"}}
	}
	return entry
}

func (d *Driver) renderReport(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, template *devices.Template, pods []*corev1.Pod) (*devices.Report, error) {
	allocated := &devices.Allocated{
		Node:   d.Lookup.Node,
		Result: result,
		Config: ParametersFor(claim, result),
		Claim:  devices.Object{Name: claim.Name, Namespace: claim.Namespace, UID: claim.UID},
		Pods:   objectsOf(pods),
	}
	var err error
	if allocated.DriverPod, err = template.DriverPodData(); err != nil {
		return nil, fmt.Errorf("render template %s: %w", template.Name, err)
	}
	if template.ClaimStatus.UsesDevice {
		if allocated.Device, err = d.Lookup.Device(result); err != nil {
			return nil, err
		}
	}
	report, err := template.ClaimStatus.Render(allocated)
	if err != nil {
		return nil, fmt.Errorf("render template %s for device %s: %w", template.Name, result.Device, err)
	}
	return report, nil
}

// objectsOf names Pods for templates, in the order of their names.
func objectsOf(pods []*corev1.Pod) []devices.Object {
	objects := make([]devices.Object, len(pods))
	for i, pod := range pods {
		objects[i] = devices.Object{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
	}
	slices.SortFunc(objects, func(a, b devices.Object) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return objects
}

// Unprepare fails where a plugin does not answer, or is not there. Else it has nothing to undo: what was prepared is in the
// claims alone.
func (d *Driver) Unprepare(last []*resourcev1.ResourceClaim) (plan.Answer, error) {
	for _, claim := range last {
		for _, result := range claim.Status.Allocation.Devices.Results {
			if !d.Has(result.Driver) || plan.SkipsPrepare(claim, result.Driver) {
				continue
			}
			switch d.pluginState(result.Driver) {
			case lifecycle.PluginSilent:
				return plan.Answered, plan.UnavailableToUnprepare(result.Driver)
			case lifecycle.PluginGone:
				return plan.Answered, plan.NotRegistered(result.Driver)
			}
		}
	}
	return plan.Answered, nil
}

// ReportsHealth reports whether any driver reports the health of its devices.
func (d *Driver) ReportsHealth() bool {
	return slices.ContainsFunc(d.set.Templates, func(t *devices.Template) bool { return t.Health == v1alpha1.HealthReport })
}

// Health is what the kubelet would know of a device: nothing where its driver does
// not report health, or its plugin is down. It knows the device by the first CDI device id
// that the driver gives, or else by its full name.
func (d *Driver) Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*plan.Health, error) {
	if err := d.checkSettled(result); err != nil || !d.Has(result.Driver) {
		return nil, err
	}
	template, err := d.Lookup.Template(result)
	if err != nil {
		return nil, err
	}
	report, err := d.renderReport(claim, result, template, []*corev1.Pod{pod})
	if err != nil {
		return nil, err
	}
	id := result.Driver + "/" + result.Pool + "/" + result.Device
	if len(report.CDIDeviceIDs) > 0 {
		id = report.CDIDeviceIDs[0]
	}
	health := &plan.Health{Reported: template.Health == v1alpha1.HealthReport}
	health.ResourceID, health.Health = corev1.ResourceID(id), corev1.ResourceHealthStatusUnknown
	if !health.Reported || d.pluginState(result.Driver) != lifecycle.PluginUp {
		return health, nil
	}
	device, err := d.Lookup.Device(result)
	if err != nil {
		return nil, err
	}
	health.Health = corev1.ResourceHealthStatusUnhealthy
	if devices.Healthy(device) {
		health.Health = corev1.ResourceHealthStatusHealthy
	}
	return health, nil
}
