package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// Driver answers for the real drivers of a node, in one look at a Pod.
type Driver struct {
	node *node // nil where the node has no folder here
	// unread says that it will have one.
	unread bool
	// unusable is why it cannot have one, and claims are those of the Pod then.
	unusable *failure
	claims   map[string]*resourcev1.ResourceClaim
	pod      *corev1.Pod
	// state is what Stages say of the node's plugins.
	state lifecycle.Plugin
	// templates reports whether a driver has templates.
	templates func(driver string) bool

	// last is the call that runs for the Pod, or has failed.
	last call
}

// Driver looks at the real drivers of a node for a Pod, which takes the answer to its last call; or
// without a Pod, which takes none. Templates says which drivers have
// templates: of these, only plugins that have registered are real.
func (k *Kubelets) Driver(pod *corev1.Pod, fake *corev1.Node, templates func(driver string) bool) plan.Driver {
	d := &Driver{node: k.get(fake.Name), pod: pod, state: lifecycle.PluginOf(fake), templates: templates}
	if d.node == nil {
		d.unusable = k.failureOf(fake.Name)
		d.unread = d.unusable == nil && k.Owner.Acts(fake.Name, true)
	}
	switch {
	case pod == nil:
	case d.node != nil:
		d.last = d.node.calls.take(pod.UID)
	case d.unusable != nil:
		d.claims = k.Caches.Claims.Of(pod)
	}
	return d
}

// Has reports whether a driver is real.
func (d *Driver) Has(driver string) bool {
	return !d.templates(driver) || d.node != nil && d.node.plugins.Has(driver)
}

// Registered reports whether a plugin of a driver has registered.
func (d *Driver) Registered(driver string) (bool, error) {
	if d.unusable != nil {
		return false, plan.Failed(plan.ReasonNotRegistered, "DRA driver %s is not registered: %w", driver, d.unusable)
	}
	return d.node != nil && d.state != lifecycle.PluginGone && d.node.plugins.Has(driver), nil
}

// Prepare reports whether the real drivers of claims have prepared them, or are to be asked.
func (d *Driver) Prepare(claims []*resourcev1.ResourceClaim) (plan.Answer, error) {
	left := d.unprepared(claims)
	switch {
	case len(left) == 0:
		return plan.Answered, nil
	case d.last.running:
		return plan.Outstanding, nil
	case d.last.err != nil:
		return plan.Answered, &plan.Failure{Reason: plan.ReasonDriver, Err: d.last.err}
	case d.state == lifecycle.PluginSilent:
		return plan.Answered, plan.Unavailable(left[0].Drivers[0])
	}
	return plan.NotAsked, nil
}

// unprepared are the claims that are not prepared for the Pod, with the real drivers that the
// kubelet would ask.
func (d *Driver) unprepared(claims []*resourcev1.ResourceClaim) []claiminfo.Claim {
	var left []claiminfo.Claim
	for _, claim := range claims {
		if drivers := d.driversOf(claim); len(drivers) > 0 && (d.node == nil || !d.node.claims.Prepared(d.pod.UID, claim)) {
			left = append(left, claiminfo.Claim{ResourceClaim: claim, Drivers: drivers})
		}
	}
	return left
}

func (d *Driver) driversOf(claim *resourcev1.ResourceClaim) []string {
	var drivers []string
	seen := map[string]bool{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if !seen[result.Driver] && d.Has(result.Driver) && !plan.SkipsPrepare(claim, result.Driver) {
			drivers = append(drivers, result.Driver)
		}
		seen[result.Driver] = true
	}
	return drivers
}

// usesReal reports whether a claim of the Pod has devices of a real driver that is asked to prepare.
func (d *Driver) usesReal() bool {
	for _, claim := range d.claims {
		if claim.Status.Allocation != nil && len(d.driversOf(claim)) > 0 {
			return true
		}
	}
	return false
}

// Entries are none: real drivers write the status of claims themselves.
func (d *Driver) Entries(claim *resourcev1.ResourceClaim, _ []*corev1.Pod) (*plan.Entries, error) {
	return &plan.Entries{Claim: claim}, nil
}

// Unprepare reports whether no claim is prepared for the Pod by real drivers any more, or these
// are to be asked.
func (d *Driver) Unprepare([]*resourcev1.ResourceClaim) (plan.Answer, error) {
	switch {
	case d.unread: // what is prepared is not known yet
		return plan.Outstanding, nil
	case d.unusable != nil && d.usesReal():
		return plan.NotAsked, d.unusable
	case d.node == nil || !d.node.claims.Pods().Has(d.pod.UID):
		return plan.Answered, nil
	case !d.last.unprepare: // what is asked for the Pod still, or has failed, is to prepare its claims
		return plan.NotAsked, nil
	case d.last.running:
		return plan.Outstanding, nil
	}
	return plan.NotAsked, d.last.err
}

// ReportsHealth reports whether any real driver reports the health of its devices, or the Pod shows what one has
// reported.
func (d *Driver) ReportsHealth() bool {
	return d.node != nil && (d.node.plugins.ReportHealth() || d.pod != nil && showsHealth(d.pod, ""))
}

// showsHealth reports whether the status of a Pod has the health of a device, or of any device for "".
func showsHealth(pod *corev1.Pod, id corev1.ResourceID) bool {
	for _, container := range pod.Status.ContainerStatuses {
		for _, status := range container.AllocatedResourcesStatus {
			if slices.ContainsFunc(status.Resources, func(shown corev1.ResourceHealth) bool { return id == "" || shown.ResourceID == id }) {
				return true
			}
		}
	}
	return false
}

// Health is what the kubelet shows of an allocated device that a real driver has prepared
// (UpdateAllocatedResourcesStatus in pkg/kubelet/cm/dra). A device that the Pod shows as healthy becomes unknown when
// its driver is gone or silent, even if health is shown only where a driver reports it.
func (d *Driver) Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*plan.Health, error) {
	device := d.prepared(claim, result)
	if device == nil {
		return nil, nil
	}
	health := &plan.Health{}
	health.ResourceID = corev1.ResourceID(result.Driver + "/" + device.PoolName + "/" + device.DeviceName)
	if len(device.CDIDeviceIDs) > 0 {
		health.ResourceID = corev1.ResourceID(device.CDIDeviceIDs[0])
	}
	health.Reported, health.Health = showsHealth(pod, health.ResourceID), corev1.ResourceHealthStatusUnknown
	p, err := d.node.plugins.Get(result.Driver)
	if err != nil || d.state != lifecycle.PluginUp {
		return health, nil //nolint:nilerr // a plugin that is away reports nothing
	}
	reported, known := p.HealthOf(plugin.Device{Pool: device.PoolName, Name: device.DeviceName})
	health.Reported, health.Health = health.Reported || known, reported.Status
	if reported.Message != "" {
		health.Message = &reported.Message
	}
	return health, nil
}

// prepared is what a real driver has returned for an allocated device, or nil.
func (d *Driver) prepared(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) *claiminfo.Device {
	if d.node == nil {
		return nil
	}
	return d.node.claims.DeviceFor(claim, result)
}

// Call asks the real drivers of a node what a plan for a Pod says. When they have answered, the Pod
// is looked at again.
func (k *Kubelets) Call(pod *corev1.Pod, fake *corev1.Node, call *plan.Call, templates func(driver string) bool) {
	n := k.get(fake.Name)
	if n == nil {
		return
	}
	ended := func() { k.podChanged(observe.Key(pod)) }
	if call.Unprepare {
		n.calls.beginUnprepare(pod.UID, facts.ClaimKeys(pod), ended)
		return
	}
	d := &Driver{node: n, pod: pod, templates: templates}
	n.calls.beginPrepare(pod.UID, d.unprepared(call.Claims), ended)
}
