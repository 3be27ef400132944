package plan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// PodView is what is known of a Pod and of what it needs.
type PodView struct {
	Pod    *corev1.Pod
	Node   *corev1.Node
	Set    *config.Set
	Driver Driver
	Claims PodClaims
	// Standby reports whether another replica acts for a Pod with those claims.
	Standby func(claims []*resourcev1.ResourceClaim) bool
	Memory  PodMemory
	// HealthDropped says that the API server does not keep the health of devices.
	HealthDropped bool
}

// PodClaims are the claims of a Pod, and who else uses them.
type PodClaims struct {
	// Known are those that the cache has, by name.
	Known map[string]*resourcev1.ResourceClaim
	// Live is what the API server has. It is nil in a view that rests on the caches.
	Live *Live
	// Users are the Pods that a claim is prepared for, and the Pod itself.
	Users func(claim *resourcev1.ResourceClaim) []*corev1.Pod
}

// PodMemory is what is remembered of a Pod. All of it can be lost.
type PodMemory struct {
	// Last is the failure that the Pod waits after, or nil.
	Last *LastFailure
	// Ended says that the claims have been unprepared since the Pod had ended. Where nobody
	// tells so in its status, it looks prepared as long as it is there.
	Ended bool
	// UnprepareFailed says that the last try to unprepare the claims has failed by what the API server has.
	UnprepareFailed bool
}

// PodPlan is what a Pod needs now. What it has is applied in the order of the fields. Once
// a patch is written, the next plan is made of the Pod that the API server answers.
type PodPlan struct {
	// Confirm says that this rests on caches that may lag: plan again with a live view.
	Confirm bool
	// Need is what a live view lacks: plan again with it.
	Need *Need
	// Standby says that another replica acts for the Pod.
	Standby bool
	// Prepared are claims that are known to be prepared for the Pod.
	Prepared []*resourcev1.ResourceClaim
	// Unprepared says that no claim is prepared for the Pod any more.
	Unprepared bool
	// Call is what drivers are to be asked. The Pod is looked at again when they have answered.
	Call *Call
	// Entries are what the claims are to show before the Pod's status is written.
	Entries []*Entries
	// Failure is to be told by an event.
	Failure *Failure
	// UnprepareFailure is why the claims cannot be unprepared yet. It is to be told by an event too.
	UnprepareFailure *Failure
	Patch            *Patch
	// Wait is how long there is nothing to do, or 0 until something changes.
	Wait time.Duration
}

// ForPod works out what a Pod and its claims need now. Its error is not the Pod's.
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
		plan.Patch = v.healthPatch()
	default:
		plan, err = v.planPrepare(ctx, now)
	}
	if need, ok := errors.AsType[*Need](err); ok {
		return PodPlan{Need: need}, nil
	}
	if failure, ok := errors.AsType[*Failure](err); ok {
		failed := v.Fail(failure, now)
		failed.Prepared = plan.Prepared
		return failed, nil
	}
	return plan, err
}

// Fail has the Pod wait as the kubelet would after a failure.
func (v *PodView) Fail(failure *Failure, now time.Time) PodPlan {
	return PodPlan{Failure: failure, Patch: v.waitingPatch(now), Wait: v.Set.RetryInterval}
}

// planPrepare prepares the claims of a Pod, all or none. Where the status is faithful, the
// Pod first waits for them.
func (v *PodView) planPrepare(ctx context.Context, now time.Time) (plan PodPlan, err error) {
	waiting := v.waitingPatch(now)
	if waiting != nil && v.Set.Faithful {
		return PodPlan{Patch: waiting}, nil
	}
	prepare, fail, err := v.selected(ctx)
	if err != nil {
		return plan, &Failure{ReasonSelector, err}
	}
	if !prepare && !fail {
		return PodPlan{Patch: waiting}, nil
	}
	if left := v.Memory.Last.remainingDelay(v, fail, now); left > 0 {
		return PodPlan{Wait: left}, nil
	}
	claims, err := v.checkClaims()
	if _, failed := errors.AsType[*Failure](err); failed && v.Claims.Live == nil {
		return PodPlan{Confirm: true}, nil
	}
	if err != nil || v.Standby(claims) { // the caches may not have had a claim
		return plan, err
	}
	answer, err := v.Driver.Prepare(claims)
	if err == nil && fail {
		err = v.simulatedFailure(claims)
	}
	switch {
	case err != nil:
		return plan, err
	case answer == Outstanding:
		return plan, nil
	case answer == NotAsked:
		return PodPlan{Call: &Call{Claims: claims}}, nil
	}
	if plan.Entries, err = v.entries(claims); err != nil {
		return PodPlan{}, err
	}
	plan.Patch = newStatusPatch(v.Pod, PatchReady, startStatus(v.Pod, corev1.ConditionTrue, now))
	return plan, nil
}

// selected reports what the configuration wants of a Pod now: that it is prepared, or
// that preparing it fails.
func (v *PodView) selected(ctx context.Context) (prepare, fail bool, err error) {
	object := lifecycle.PodObject(v.Pod)
	if fail, err = v.Set.FailWhen.Matches(ctx, object); err == nil && !fail {
		prepare, err = v.Set.PrepareWhen.Matches(ctx, object)
	}
	return prepare, fail, err
}

// checkClaims performs the kubelet's checks in its order and with its error texts
// (Manager.prepareResources in pkg/kubelet/cm/dra), and returns the claims to be
// prepared.
func (v *PodView) checkClaims() ([]*resourcev1.ResourceClaim, error) {
	var claims []*resourcev1.ResourceClaim
	for _, podClaim := range facts.PodClaims(v.Pod) {
		name, mustCheckOwner, err := resourceclaim.Name(v.Pod, &podClaim)
		if err != nil {
			return nil, &Failure{ReasonNoClaim, err}
		}
		if name == nil {
			continue // none was made for the Pod, on purpose
		}
		claim, err := v.Claims.get(*name)
		if err == nil {
			err = v.checkClaim(claim, mustCheckOwner)
		}
		if err != nil {
			return nil, err
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// get gets a claim where the kubelet would.
func (c *PodClaims) get(name string) (*resourcev1.ResourceClaim, error) {
	claim := c.Known[name]
	if c.Live != nil {
		var isRead bool
		if claim, isRead = c.Live.Claims[name]; !isRead {
			return nil, &Need{Claim: name}
		}
	}
	if claim == nil {
		return nil, Failed(ReasonNoClaim, "fetch ResourceClaim %s: %w", name, apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), name))
	}
	return claim, nil
}

func (v *PodView) checkClaim(claim *resourcev1.ResourceClaim, mustCheckOwner bool) error {
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

// SkipsPrepare reports whether the kubelet leaves a claim's driver alone: all of
// its devices in the claim say so (computeDriverStates in pkg/kubelet/cm/dra).
func SkipsPrepare(claim *resourcev1.ResourceClaim, driver string) bool {
	return !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
		return result.Driver == driver && !slices.Contains(result.SkipNodeOperations, resourcev1.SkipNodeOperationAll) &&
			!slices.Contains(result.SkipNodeOperations, resourcev1.SkipNodeOperationNodePrepareResources)
	})
}

// simulatedFailure is the failure that failWhen selects the Pod for. It is of the first claim that a
// driver would prepare.
func (v *PodView) simulatedFailure(claims []*resourcev1.ResourceClaim) error {
	has := func(result resourcev1.DeviceRequestAllocationResult) bool { return v.Driver.Has(result.Driver) }
	for _, claim := range claims {
		if slices.ContainsFunc(claim.Status.Allocation.Devices.Results, has) {
			return Failed(ReasonSimulated, "NodePrepareResources failed for ResourceClaim %s: %s", claim.Name, simulatedFailureText(v.Pod))
		}
	}
	return nil
}

// entries are what all claims of the Pod are to show.
func (v *PodView) entries(claims []*resourcev1.ResourceClaim) ([]*Entries, error) {
	var all []*Entries
	for _, claim := range claims {
		entries, err := v.Driver.Entries(claim, v.Claims.Users(claim))
		if err != nil {
			return nil, err
		}
		all = append(all, entries)
	}
	return all, nil
}

// unprepareAgain is how long after a failure drivers are asked again to unprepare claims: the
// kubelet's pod workers wait as long (backOffPeriod in pkg/kubelet).
const unprepareAgain = 10 * time.Second

// planUnprepare unprepares the claims of a Pod that ends. It writes nothing to the claims, as a
// driver; the kubelet reports it in the Pod's status, once all drivers have answered.
func (v *PodView) planUnprepare(ctx context.Context, now time.Time) (plan PodPlan, err error) {
	tell := facts.ReadyToStart(v.Pod) == corev1.ConditionTrue && v.Set.Faithful
	matched := tell || v.Set.Faithful || facts.IsTerminal(v.Pod)
	if tell {
		if matched, err = v.Set.UnprepareWhen.Matches(ctx, lifecycle.PodObject(v.Pod)); err != nil {
			return plan, &Failure{ReasonSelector, err}
		}
	}
	if !matched {
		return plan, nil
	}
	answer, err := v.Driver.Unprepare(v.lastUsed())
	failure, failed := errors.AsType[*Failure](err)
	switch {
	case failed && v.Claims.Live == nil && !v.Memory.UnprepareFailed:
		plan.Confirm = true
	case failed:
		plan.UnprepareFailure, plan.Wait = failure, unprepareAgain
	case err != nil:
		plan.UnprepareFailure, plan.Wait = &Failure{ReasonDriver, err}, unprepareAgain
	case answer == NotAsked:
		plan.Call = &Call{Unprepare: true}
	case answer == Outstanding:
	case tell:
		plan.Patch = newStatusPatch(v.Pod, PatchUnprepared, startStatus(v.Pod, corev1.ConditionFalse, now))
	default:
		plan.Unprepared = true
	}
	return plan, nil
}

// lastUsed are the claims that are prepared for the Pod and for no other Pod on its node: of these the kubelet asks the drivers.
func (v *PodView) lastUsed() []*resourcev1.ResourceClaim {
	if facts.ReadyToStart(v.Pod) != corev1.ConditionTrue || v.Memory.Ended {
		return nil
	}
	var last []*resourcev1.ResourceClaim
	for _, name := range slices.Sorted(maps.Keys(v.Claims.Known)) {
		claim := v.Claims.Known[name]
		other := func(pod *corev1.Pod) bool { return pod.UID != v.Pod.UID && pod.Spec.NodeName == v.Pod.Spec.NodeName }
		if claim.Status.Allocation != nil && !slices.ContainsFunc(v.Claims.Users(claim), other) {
			last = append(last, claim)
		}
	}
	return last
}

// waitingPatch gives a Pod the status of one that waits, unless it has it, or its
// containers run without having waited.
func (v *PodView) waitingPatch(now time.Time) *Patch {
	if phase := v.Pod.Status.Phase; facts.ReadyToStart(v.Pod) != "" || phase != corev1.PodPending && phase != "" {
		return nil
	}
	return newStatusPatch(v.Pod, PatchWaiting, waitingStatus(v.Pod, v.Node, now))
}
