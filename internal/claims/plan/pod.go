package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// PodView is what is known of a Pod and of what it needs.
type PodView struct {
	Pod    *corev1.Pod
	Node   *corev1.Node
	Set    *config.Set
	Driver Driver
	Claims PodClaims
	// Standby reports whether another replica acts for a Pod with these claims.
	Standby func(claims []*resourcev1.ResourceClaim) bool
	Memory  PodMemory
	// Health is nil if Pods show none.
	Health Health
}

// PodClaims are the claims of a Pod, and who else uses them.
type PodClaims struct {
	// Known maps names to the claims that the cache has.
	Known map[string]*resourcev1.ResourceClaim
	// Live is what was read from the API server. It is nil in a view that rests on the caches.
	Live *Live
	// Users lists the Pods that a claim is prepared for, and the Pod itself.
	Users func(claim *resourcev1.ResourceClaim) []*corev1.Pod
}

// PodMemory is what is remembered of a Pod. All of it can be lost.
type PodMemory struct {
	// Last is the failure after which the Pod waits for a retry, or nil.
	Last *LastFailure
	// PendingSince is when a driver began a call that it still tries, or zero.
	PendingSince time.Time
	// Ended says that the claims were unprepared after the Pod had ended. With minimal status the Pod
	// looks prepared for as long as it exists.
	Ended bool
	// UnprepareFailed says that the last try to unprepare the claims failed, on what the API server has.
	UnprepareFailed bool
}

// PodPlan is what a Pod needs now. It is applied in the order of its fields. After a Patch, the next plan
// is made of the Pod that the API server returns.
type PodPlan struct {
	// Need is what the view lacks. A plan with a Need has to be made again.
	Need *Need
	// Standby says that another replica acts for the Pod.
	Standby bool
	// Prepared are claims that are known to be prepared for the Pod.
	Prepared []*resourcev1.ResourceClaim
	// Unprepared says that no claim is prepared for the Pod any more.
	Unprepared bool
	// Call is what to ask the drivers. The Pod is requeued when they have answered.
	Call *Call
	// Entries are what the claims show before the Pod's status is written.
	Entries []*Entries
	// Failure is what keeps the claims from being prepared or unprepared, and Outcome what it means.
	Failure *Failure
	Outcome Outcome
	Patch   *Patch
	// Wait is the time until the next look at the Pod, or 0 if only a change makes one necessary.
	Wait time.Duration
}

// Outcome is what a Failure of a PodPlan means.
type Outcome int

const (
	// Unhindered is that of a plan without a Failure.
	Unhindered Outcome = iota
	// PrepareFailed causes an event.
	PrepareFailed
	// UnprepareFailed causes an event of another kind.
	UnprepareFailed
	// PreparePending is a failure that follows unless a driver can prepare the claims within Wait.
	PreparePending
)

// Need is what a plan for a Pod lacks. It has to be read from the API server before the plan is made
// again. Looks at claims and drivers return it as an error.
type Need struct {
	// LiveView asks for a view that rests on the API server, since the caches may lag.
	LiveView bool
	// Claim is the name of a claim of the Pod that a live view lacks.
	Claim string
	// Slices is a driver of which a live view does not know whether it has slices on the node.
	Slices string
}

// Error names what has to be read.
func (n *Need) Error() string {
	return fmt.Sprintf("not read from the API server: %+v", *n)
}

// Live is what was read from the API server in one look at a Pod.
type Live struct {
	// Claims maps the names of claims that were read to the claims, or to nil where there is none.
	Claims map[string]*resourcev1.ResourceClaim
	// HaveSlices says for each driver that was looked up whether it has slices on the node.
	HaveSlices map[string]bool
}

// NewLive returns a Live before anything was read.
func NewLive() *Live {
	return &Live{Claims: map[string]*resourcev1.ResourceClaim{}, HaveSlices: map[string]bool{}}
}

// ForPod works out what a Pod and its claims need now. A non-nil error means that something could not be
// evaluated; what a kubelet would report is a Failure of the plan.
func ForPod(ctx context.Context, v *PodView, now time.Time) (plan PodPlan, err error) {
	known := slices.Collect(maps.Values(v.Claims.Known))
	ready := facts.ReadyToStart(v.Pod) == corev1.ConditionTrue
	switch {
	case v.Standby(known) && ready && !facts.IsTerminal(v.Pod):
		return PodPlan{Standby: true, Prepared: known}, nil
	case v.Standby(known):
		return PodPlan{Standby: true, Unprepared: true}, nil
	case facts.IsEnding(v.Pod):
		plan, err = v.planUnprepare(ctx, now)
		if ready && (v.Set.Faithful || !v.Memory.Ended) {
			plan.Prepared = known
		}
	case ready:
		plan.Prepared = known
		if v.Health != nil {
			plan.Patch = v.Health.Patch(v)
		}
	case v.Set.Faithful && v.lacksWaitingStatus(): // the Pod shows that it waits before it is prepared
		return PodPlan{Patch: v.waitingPatch(now)}, nil
	default:
		plan, err = v.planPrepare(ctx, now)
	}
	if need, ok := errors.AsType[*Need](err); ok {
		return PodPlan{Need: need}, nil
	}
	if pending, ok := errors.AsType[*Pending](err); ok {
		tried := time.Duration(0)
		if since := v.Memory.PendingSince; !since.IsZero() {
			tried = now.Sub(since)
		}
		if tried < pending.Timeout {
			return PodPlan{Failure: pending.Failure, Outcome: PreparePending, Patch: v.waitingPatch(now), Wait: pending.Timeout - tried}, nil
		}
		err = pending.Failure
	}
	if failure, ok := errors.AsType[*Failure](err); ok {
		failed := v.Fail(failure, now)
		failed.Prepared = plan.Prepared
		return failed, nil
	}
	return plan, err
}

// Fail makes the Pod wait as it does on a kubelet after a failure.
func (v *PodView) Fail(failure *Failure, now time.Time) PodPlan {
	return PodPlan{Failure: failure, Outcome: PrepareFailed, Patch: v.waitingPatch(now), Wait: v.Set.RetryInterval}
}

// planPrepare prepares the claims of a Pod, all or none. While prepareWhen and failWhen do not select the Pod, it waits.
func (v *PodView) planPrepare(ctx context.Context, now time.Time) (plan PodPlan, err error) {
	prepares, object := false, lifecycle.NewObject(v.Pod)
	fails, err := v.Set.FailWhen.Matches(ctx, object)
	if err == nil && !fails {
		prepares, err = v.Set.PrepareWhen.Matches(ctx, object)
	}
	if err != nil {
		return plan, &Failure{ReasonSelector, err}
	}
	if !prepares && !fails {
		return PodPlan{Patch: v.waitingPatch(now)}, nil
	}
	if delay := v.Memory.Last.remainingDelay(v, fails, now); delay > 0 {
		return PodPlan{Wait: delay}, nil
	}
	claims, err := v.checkClaims()
	if _, failed := errors.AsType[*Failure](err); failed && v.Claims.Live == nil {
		return plan, &Need{LiveView: true}
	}
	if err != nil || v.Standby(claims) { // the caches may have lacked a claim
		return plan, err
	}
	answer, err := v.Driver.Prepare(claims)
	if fails && err == nil {
		has := func(result resourcev1.DeviceRequestAllocationResult) bool { return v.Driver.Has(result.Driver) }
		first := slices.IndexFunc(claims, func(claim *resourcev1.ResourceClaim) bool { // the first claim that a driver would prepare
			return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, has)
		})
		if first >= 0 {
			err = Failed(ReasonSimulated, "NodePrepareResources failed for ResourceClaim %s: %s", claims[first].Name, simulatedFailureText(v.Pod))
		}
	}
	switch {
	case err != nil, answer == Outstanding:
		return plan, err
	case answer == NotAsked:
		return PodPlan{Call: &Call{Claims: claims}}, nil
	}
	for _, claim := range claims {
		entries, err := v.Driver.Entries(claim, v.Claims.Users(claim))
		if err != nil {
			return PodPlan{}, err
		}
		plan.Entries = append(plan.Entries, entries)
	}
	status := startStatus(corev1.ConditionTrue)
	if v.Health != nil {
		status.ContainerStatuses = v.Health.ContainerStatuses(v)
	}
	plan.Patch = newStatusPatch(v.Pod, PatchReady, status, now)
	return plan, nil
}

// checkClaims performs the kubelet's checks in its order and with its error texts
// (Manager.prepareResources in pkg/kubelet/cm/dra), and returns the claims to prepare.
func (v *PodView) checkClaims() ([]*resourcev1.ResourceClaim, error) {
	var claims []*resourcev1.ResourceClaim
	for _, podClaim := range facts.PodClaims(v.Pod) {
		name, mustCheckOwner, err := resourceclaim.Name(v.Pod, &podClaim)
		if err != nil {
			return nil, &Failure{ReasonNoClaim, err}
		}
		if name == nil {
			continue // the Pod needs none for this entry
		}
		claim := v.Claims.Known[*name]
		if v.Claims.Live != nil {
			var isRead bool
			if claim, isRead = v.Claims.Live.Claims[*name]; !isRead {
				return nil, &Need{Claim: *name}
			}
		}
		if err := v.checkClaim(claim, *name, mustCheckOwner); err != nil {
			return nil, err
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

func (v *PodView) checkClaim(claim *resourcev1.ResourceClaim, name string, mustCheckOwner bool) error {
	if claim == nil {
		return Failed(ReasonNoClaim, "fetch ResourceClaim %s: %w", name, apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), name))
	}
	if mustCheckOwner {
		if err := resourceclaim.IsForPod(v.Pod, claim, true); err != nil {
			return &Failure{ReasonNotOwner, err}
		}
	}
	if !resourceclaim.IsReservedForPod(v.Pod, claim, true) {
		return Failed(ReasonNotReserved, "pod %s (%s) is not allowed to use ResourceClaim %s (%s)", v.Pod.Name, v.Pod.UID, claim.Name, claim.UID)
	}
	if claim.Status.Allocation == nil {
		return Failed(ReasonNotAllocated, "ResourceClaim %s: not allocated", claim.Name)
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if SkipsPrepare(claim, result.Driver) {
			continue
		}
		registered, err := v.Driver.Registered(result.Driver)
		if err != nil {
			return err
		}
		if !registered {
			return NotRegistered(result.Driver)
		}
	}
	return nil
}

// SkipsPrepare reports whether the kubelet does not call a driver to prepare a claim.
func SkipsPrepare(claim *resourcev1.ResourceClaim, driver string) bool {
	return SkipsOperation(claim, driver, resourcev1.SkipNodeOperationNodePrepareResources)
}

// SkipsOperation reports whether the kubelet does not call a driver for an operation on a claim, since all of
// the driver's devices in the claim say so (computeDriverStates in pkg/kubelet/cm/dra).
func SkipsOperation(claim *resourcev1.ResourceClaim, driver string, operation resourcev1.SkipNodeOperation) bool {
	return !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
		return result.Driver == driver && !slices.Contains(result.SkipNodeOperations, resourcev1.SkipNodeOperationAll) &&
			!slices.Contains(result.SkipNodeOperations, operation)
	})
}

// unprepareRetryInterval is how long after a failure drivers are asked again to unprepare claims
// (backOffPeriod in internal/extensions/realdrivers/kubelet).
const unprepareRetryInterval = 10 * time.Second

// planUnprepare unprepares the claims of a Pod that ends. Like a driver it writes nothing to the claims.
// With faithful status the Pod shows it, like a kubelet's, once all drivers have answered.
func (v *PodView) planUnprepare(ctx context.Context, now time.Time) (plan PodPlan, err error) {
	isPrepared, matched := facts.ReadyToStart(v.Pod) == corev1.ConditionTrue, v.Set.Faithful || facts.IsTerminal(v.Pod)
	showsStatus := isPrepared && v.Set.Faithful
	if showsStatus {
		if matched, err = v.Set.UnprepareWhen.Matches(ctx, lifecycle.NewObject(v.Pod)); err != nil {
			return plan, &Failure{ReasonSelector, err}
		}
	}
	if !matched {
		return plan, nil
	}
	// The kubelet asks only the drivers of claims that are prepared for no other Pod on the node.
	var last []*resourcev1.ResourceClaim
	if isPrepared && !v.Memory.Ended {
		isOther := func(pod *corev1.Pod) bool { return pod.UID != v.Pod.UID && pod.Spec.NodeName == v.Pod.Spec.NodeName }
		for _, name := range slices.Sorted(maps.Keys(v.Claims.Known)) {
			if claim := v.Claims.Known[name]; claim.Status.Allocation != nil && !slices.ContainsFunc(v.Claims.Users(claim), isOther) {
				last = append(last, claim)
			}
		}
	}
	answer, err := v.Driver.Unprepare(last)
	failure, failed := errors.AsType[*Failure](err)
	switch {
	case failed && v.Claims.Live == nil && !v.Memory.UnprepareFailed:
		plan.Need = &Need{LiveView: true}
	case failed:
		plan.Failure, plan.Outcome, plan.Wait = failure, UnprepareFailed, unprepareRetryInterval
	case err != nil:
		plan.Failure, plan.Outcome, plan.Wait = &Failure{ReasonDriver, err}, UnprepareFailed, unprepareRetryInterval
	case answer == NotAsked:
		plan.Call = &Call{Unprepare: true}
	case answer == Outstanding:
	case showsStatus:
		plan.Patch = newStatusPatch(v.Pod, PatchUnprepared, startStatus(corev1.ConditionFalse), now)
	default:
		plan.Unprepared = true
	}
	return plan, nil
}
