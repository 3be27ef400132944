package templates

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Driver answers for the drivers of one node that have templates. It must not be shared by goroutines.
type Driver struct {
	// Lookup finds the templates and the published form of allocated devices.
	Lookup *devices.Lookup
	// IsReal, if set, reports whether a driver that has templates is a real one on this node.
	IsReal func(driver string) bool
	// CheckGate, if set, returns why a device that the driver could prepare has to wait.
	CheckGate func(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error

	set    *config.Set
	node   *corev1.Node
	slices Slices
	bound  devices.Bound
}

// Slices is what is known of published ResourceSlices.
type Slices struct {
	// Of reports whether a driver has a pool on the node. It is not known if that has to be read first.
	Of func(driver string) (has, known bool)
	// Have reports whether an allocated device is in a slice of kwok-dra's.
	Have func(node string, result *resourcev1.DeviceRequestAllocationResult) bool
}

// New makes a Driver from the active templates and the driver Pods on the node. Pods may be nil.
func New(set *config.Set, node *corev1.Node, slices Slices, pods devices.Pods) *Driver {
	bound := devices.Bind(set.Templates, node, pods)
	return &Driver{set: set, node: node, Lookup: bound.NewLookup(node), slices: slices, bound: bound}
}

// Has reports whether a driver has templates, and is not a real one on this node.
func (d *Driver) Has(driver string) bool {
	return d.set.HasDriver(driver) && (d.IsReal == nil || !d.IsReal(driver))
}

// Registered implements plan.Driver. A driver with templates has registered if it has published slices.
func (d *Driver) Registered(driver string) (bool, error) {
	if !d.Has(driver) {
		return true, nil
	}
	switch d.PluginState(driver) {
	case lifecycle.PluginGone:
		return false, nil
	case lifecycle.PluginSilent:
		return true, nil
	}
	registered, known := d.slices.Of(driver)
	if !known {
		return false, &plan.Need{Slices: driver}
	}
	return registered, nil
}

// PluginState returns the state of a driver's plugin by the Node's condition, and by the driver's Pod if
// the templates name one.
func (d *Driver) PluginState(driver string) lifecycle.Plugin {
	state := lifecycle.PluginOf(d.node)
	down, isDown := d.bound.Down[driver]
	switch {
	case state == lifecycle.PluginGone, isDown && !down.Registered:
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

// Prepare implements plan.Driver. It fails for the first device of which nobody knows what its driver does, whose plugin is
// silent or refuses the parameters, or that the gate holds back.
func (d *Driver) Prepare(claims []*resourcev1.ResourceClaim) (plan.Answer, error) {
	for _, claim := range claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			skips, err := plan.SkipsPrepare(claim, result.Driver), d.CheckSettled(&result)
			switch {
			case err != nil && !skips:
				err = plan.Failed(plan.ReasonUnsettled, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
			case !d.Has(result.Driver):
				err = nil
			case d.PluginState(result.Driver) == lifecycle.PluginSilent:
				err = plan.Unavailable(plan.CallPrepare, result.Driver)
			case skips:
				err = nil
			default:
				if err = d.checkParameters(claim, &result); err == nil && d.CheckGate != nil {
					err = d.CheckGate(claim, &result)
				}
			}
			if err != nil {
				return plan.Answered, err
			}
		}
	}
	return plan.Answered, nil
}

// CheckSettled returns an error if nobody knows what the driver of a device does: kwok-dra has published
// the device, no active document makes it, and a rejected document without a good version may.
func (d *Driver) CheckSettled(result *resourcev1.DeviceRequestAllocationResult) error {
	if len(d.set.Unsettled) == 0 || !d.slices.Have(d.node.Name, result) {
		return nil
	}
	if _, err := d.Lookup.Template(result); err != nil {
		return fmt.Errorf("%w, until this is settled: %w", err, utilerrors.NewAggregate(d.set.Unsettled))
	}
	return nil
}

// checkParameters fails if the driver of an allocated device cannot use the opaque parameters for it. A
// device without a template passes, since Entries reports it.
func (d *Driver) checkParameters(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error {
	if len(claim.Status.Allocation.Devices.Config) == 0 {
		return nil
	}
	template, err := d.Lookup.Template(result)
	if err != nil || template.CheckParameters == nil {
		return nil //nolint:nilerr // Entries reports it
	}
	for _, parameters := range ParametersFor(claim, result) {
		if err := template.CheckParameters(result.Driver, parameters.Raw); err != nil {
			return plan.Failed(plan.ReasonParameters, "NodePrepareResources failed for ResourceClaim %s: error preparing devices for claim %s: %w", claim.Name, claim.UID, err)
		}
	}
	return nil
}

// Entries implements plan.Driver: for each device whose driver has a template what that template says, and
// nothing for other devices and those that need no preparing.
func (d *Driver) Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*plan.Entries, error) {
	failed := func(err error) error {
		return plan.Failed(plan.ReasonTemplate, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
	}
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
			return nil, failed(err)
		}
		if !template.ClaimStatus.Writes {
			continue
		}
		report, err := d.renderReport(claim, &result, template, pods)
		if err != nil {
			return nil, failed(err)
		}
		entry := facts.EntryFor(&result)
		entry.Data, entry.NetworkData = report.Data, report.NetworkData
		switch {
		case template.ClaimStatus.Ready: // AllocatedDeviceStatus asks for this of a driver that has configured the device
			entry.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Prepared", Message: "device is prepared"}}
		case entry.Data == nil && entry.NetworkData == nil:
			continue
		}
		want.Devices = append(want.Devices, entry)
		want.NamePods = want.NamePods || template.ClaimStatus.UsesPods
	}
	return want, nil
}

// renderReport renders the claimStatus of the template of an allocated device.
func (d *Driver) renderReport(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, template *devices.Template, pods []*corev1.Pod) (*devices.Report, error) {
	allocated := &devices.Allocated{
		Node:      d.Lookup.Node,
		DriverPod: template.Pod.Data,
		Result:    result,
		Config:    ParametersFor(claim, result),
		Claim:     devices.Object{Name: claim.Name, Namespace: claim.Namespace, UID: claim.UID},
		Pods:      sortedObjects(pods),
	}
	var err error
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

// sortedObjects converts Pods for templates, in the order of their names.
func sortedObjects(pods []*corev1.Pod) []devices.Object {
	objects := make([]devices.Object, len(pods))
	for i, pod := range pods {
		objects[i] = devices.Object{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
	}
	slices.SortFunc(objects, func(a, b devices.Object) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return objects
}

// Unprepare implements plan.Driver. It fails if a plugin is silent or gone. Otherwise nothing has to be undone,
// since only the claims show what was prepared.
func (d *Driver) Unprepare(last []*resourcev1.ResourceClaim) (plan.Answer, error) {
	for _, claim := range last {
		for _, result := range claim.Status.Allocation.Devices.Results {
			if !d.Has(result.Driver) || plan.SkipsPrepare(claim, result.Driver) {
				continue
			}
			switch d.PluginState(result.Driver) {
			case lifecycle.PluginSilent:
				return plan.Answered, plan.Unavailable(plan.CallUnprepare, result.Driver)
			case lifecycle.PluginGone:
				return plan.Answered, plan.NotRegistered(result.Driver)
			}
		}
	}
	return plan.Answered, nil
}

// CDIDeviceIDs lists the CDI devices of an allocated device that the kubelet learns for a Pod.
func (d *Driver) CDIDeviceIDs(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, error) {
	template, err := d.Lookup.Template(result)
	if err != nil {
		return nil, err
	}
	report, err := d.renderReport(claim, result, template, []*corev1.Pod{pod})
	if err != nil {
		return nil, err
	}
	return report.CDIDeviceIDs, nil
}

// ParametersFor lists the opaque parameters for the driver and the request of an allocated device.
func ParametersFor(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) []runtime.RawExtension {
	return ParametersOf(resourceclaim.ConfigForResult(claim.Status.Allocation.Devices.Config, *result), result.Driver)
}

// ParametersOf lists the opaque parameters for a driver, those of the class before those of the claim.
// The scheduler allocates in this order (DeviceAllocationResult.Config); other allocators may not.
func ParametersOf(configs []resourcev1.DeviceAllocationConfiguration, driver string) []runtime.RawExtension {
	parameters := []runtime.RawExtension{}
	for _, source := range []resourcev1.AllocationConfigSource{resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim} {
		for _, config := range configs {
			if config.Source == source && config.Opaque != nil && config.Opaque.Driver == driver {
				parameters = append(parameters, config.Opaque.Parameters)
			}
		}
	}
	return parameters
}
