package kubelet

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicehealth"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Driver answers for the real drivers of a node in one look at a Pod. It changes nothing.
type Driver struct {
	// node is nil unless this replica has started the node's kubelet. isUnread says that it is going to,
	// and unusable why it cannot.
	node     *node
	isUnread bool
	unusable *failure
	// claims are the claims of the Pod if the node is unusable.
	claims map[string]*resourcev1.ResourceClaim
	pod    *corev1.Pod
	// state is what Stages say of the node's plugins.
	state lifecycle.Plugin
	// hasTemplates reports whether a driver has templates.
	hasTemplates func(driver string) bool

	// last is the Pod's call that is running, or has failed without a report.
	last call
}

// Driver returns what is known now of the real drivers of a node, for a Pod or for none. A driver that
// has templates is a real one only if its plugin has registered.
func (k *Kubelets) Driver(pod *corev1.Pod, fake *corev1.Node, hasTemplates func(driver string) bool) *Driver {
	d := &Driver{node: k.runningNode(fake.Name), pod: pod, state: lifecycle.PluginOf(fake), hasTemplates: hasTemplates}
	if d.node == nil {
		d.unusable = k.failureOf(fake.Name)
		d.isUnread = d.unusable == nil && k.Owner.Acts(fake.Name, true)
	}
	switch {
	case pod == nil:
	case d.node != nil:
		d.last = d.node.calls.lastCall(pod.UID)
	case d.unusable != nil:
		d.claims = k.Caches.Claims.Of(pod)
	}
	return d
}

// Has reports whether a driver is real.
func (d *Driver) Has(driver string) bool {
	return !d.hasTemplates(driver) || d.node != nil && d.node.plugins.Has(driver)
}

// Registered reports whether a plugin of a driver has registered.
func (d *Driver) Registered(driver string) (bool, error) {
	if d.unusable != nil {
		return false, plan.Failed(plan.ReasonNotRegistered, "DRA driver %s is not registered: %w", driver, d.unusable)
	}
	return d.node != nil && d.state != lifecycle.PluginGone && d.node.plugins.Has(driver), nil
}

// Prepare reports whether the real drivers of claims have prepared them, or have to be asked.
func (d *Driver) Prepare(claims []*resourcev1.ResourceClaim) (plan.Answer, error) {
	unprepared := d.unpreparedClaims(claims)
	switch {
	case len(unprepared) == 0:
		return plan.Answered, nil
	case d.last.isRunning:
		return plan.Outstanding, nil
	case d.last.err != nil:
		return plan.Answered, &plan.Failure{Reason: plan.ReasonDriver, Err: d.last.err}
	}
	if driver := firstToPrepare(unprepared); d.state == lifecycle.PluginSilent && driver != "" {
		return plan.Answered, plan.Unavailable(plan.CallPrepare, driver)
	}
	return plan.NotAsked, nil
}

// firstToPrepare names the driver that a kubelet asks first to prepare claims, or none.
func firstToPrepare(claims []claiminfo.Claim) string {
	for _, claim := range claims {
		for _, driver := range slices.Sorted(maps.Keys(claim.Drivers)) {
			if !claim.Drivers[driver].Skips(resourcev1.SkipNodeOperationNodePrepareResources) {
				return driver
			}
		}
	}
	return ""
}

// unpreparedClaims lists the claims that are not prepared for the Pod, with the real drivers that a
// kubelet would ask.
func (d *Driver) unpreparedClaims(claims []*resourcev1.ResourceClaim) []claiminfo.Claim {
	var unprepared []claiminfo.Claim
	for _, claim := range claims {
		if drivers := d.realDriversOf(claim); len(drivers) > 0 && (d.node == nil || !d.node.claims.Prepared(d.pod.UID, claim)) {
			unprepared = append(unprepared, claiminfo.Claim{ResourceClaim: claim, Drivers: drivers})
		}
	}
	return unprepared
}

// nodeOperations are what a kubelet asks drivers for, unless all of their devices in a claim say that it need not.
var nodeOperations = []resourcev1.SkipNodeOperation{
	resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources,
}

// realDriversOf has the real drivers of a claim that a kubelet asks to prepare or to unprepare it.
func (d *Driver) realDriversOf(claim *resourcev1.ResourceClaim) map[string]claiminfo.DriverState {
	drivers := map[string]claiminfo.DriverState{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if _, seen := drivers[result.Driver]; seen || !d.Has(result.Driver) {
			continue
		}
		var skipped []resourcev1.SkipNodeOperation
		for _, operation := range nodeOperations {
			if plan.SkipsOperation(claim, result.Driver, operation) {
				skipped = append(skipped, operation)
			}
		}
		if len(skipped) < len(nodeOperations) {
			drivers[result.Driver] = claiminfo.DriverState{SkipNodeOperations: skipped}
		}
	}
	return drivers
}

// usesRealDrivers reports whether a kubelet asks a real driver for anything about a claim of the Pod.
func (d *Driver) usesRealDrivers() bool {
	for _, claim := range d.claims {
		if claim.Status.Allocation != nil && len(d.realDriversOf(claim)) > 0 {
			return true
		}
	}
	return false
}

// Entries returns none, since real drivers write the status of claims themselves.
func (d *Driver) Entries(claim *resourcev1.ResourceClaim, _ []*corev1.Pod) (*plan.Entries, error) {
	return &plan.Entries{Claim: claim}, nil
}

// Unprepare reports whether real drivers have unprepared all claims of the Pod, or have to be asked.
func (d *Driver) Unprepare([]*resourcev1.ResourceClaim) (plan.Answer, error) {
	switch {
	case d.isUnread: // the checkpoint has not been read
		return plan.Outstanding, nil
	case d.unusable != nil && d.usesRealDrivers():
		return plan.NotAsked, d.unusable
	case d.node == nil || !d.node.claims.Pods().Has(d.pod.UID):
		return plan.Answered, nil
	case !d.last.isUnprepare: // the last call was to prepare the claims
		return plan.NotAsked, nil
	case d.last.isRunning:
		return plan.Outstanding, nil
	}
	return plan.NotAsked, d.last.err
}

// ReportsHealth reports whether a real driver reports the health of its devices, or the Pod still shows
// what one reported before.
func (d *Driver) ReportsHealth() bool {
	return d.node != nil && (d.node.plugins.ReportHealth() || d.pod != nil && showsHealth(d.pod, ""))
}

// showsHealth reports whether the status of a Pod shows the health of a device, or of any device for "".
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

// Health returns what a kubelet shows of an allocated device that a real driver has prepared
// (UpdateAllocatedResourcesStatus in pkg/kubelet/cm/dra). A device that the Pod shows as healthy becomes
// unknown when its driver is gone or silent, even where only reported health is shown.
func (d *Driver) Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*devicehealth.Health, error) {
	if d.node == nil {
		return nil, nil
	}
	device := d.node.claims.DeviceFor(claim, result)
	if device == nil {
		return nil, nil
	}
	health := &devicehealth.Health{}
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

// Call asks the real drivers of a node in the background, and requeues the Pod when they have answered.
func (k *Kubelets) Call(pod *corev1.Pod, fake *corev1.Node, request *plan.Call, hasTemplates func(driver string) bool) {
	n := k.runningNode(fake.Name)
	if n == nil {
		return
	}
	ended := func() { k.podChanged(observe.Key(pod)) }
	if request.Unprepare {
		n.calls.beginUnprepare(pod.UID, facts.ClaimKeys(pod), ended)
		return
	}
	d := &Driver{node: n, pod: pod, hasTemplates: hasTemplates}
	claims := d.unpreparedClaims(request.Claims)
	n.calls.beginCall(pod.UID, &call{}, func(ctx context.Context) error { return n.calls.prepareClaims(ctx, pod.UID, claims) }, ended)
}

// Acknowledge says that a failure of a Pod was reported. If it was the answer of real drivers, a Driver
// no longer gives that answer, and they are asked again.
func (k *Kubelets) Acknowledge(pod *corev1.Pod, fake *corev1.Node, failure error) {
	if n := k.runningNode(fake.Name); n != nil {
		n.calls.forgetReported(pod.UID, failure)
	}
}
