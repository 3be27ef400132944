package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// PodView is what is known of a Pod and of what it needs.
type PodView struct {
	Pod    *corev1.Pod
	Node   *corev1.Node
	Set    *config.Set
	Driver Driver
	// Known gets a claim of the Pod's namespace from the cache.
	Known func(name string) (*resourcev1.ResourceClaim, error)
	// Claim gets one where the kubelet would: from the cache, or from the API server.
	Claim func(name string) (*resourcev1.ResourceClaim, error)
	// Users are the Pods that a claim is prepared for, and the Pod itself.
	Users func(claim *resourcev1.ResourceClaim) []*corev1.Pod
	// Standby reports whether another replica acts for a Pod with those claims.
	Standby func(claims []*resourcev1.ResourceClaim) bool
	// Last is the failure that the Pod waits after, or nil.
	Last *LastFailure
	// Ended says that the claims have been unprepared since the Pod had ended.
	Ended bool
	// HealthDropped says that the API server does not keep the health of devices.
	HealthDropped bool
	// Live says that Claim and Driver ask the API server.
	Live bool
}

// PodPlan is what a Pod needs now. What it has is applied in the order of the fields. Once
// a patch is written, the next plan is made of the Pod that the API server answers.
type PodPlan struct {
	// Confirm says that this rests on caches that may lag: plan again with a live view.
	Confirm bool
	// Standby says that another replica acts for the Pod.
	Standby bool
	// Prepared are claims that are known to be prepared for the Pod.
	Prepared []*resourcev1.ResourceClaim
	// Unprepared says that no claim is prepared for the Pod any more.
	Unprepared bool
	// Entries are what the claims are to show before the Pod's status is written.
	Entries []*Entries
	// Failure is to be told by an event.
	Failure *Failure
	Patch   *Patch
	// Wait is how long there is nothing to do, or 0 until something changes.
	Wait time.Duration
}

// ForPod works out what a Pod and its claims need now. Its error is not the Pod's: a
// look at the API server has failed.
func ForPod(ctx context.Context, v *PodView, now time.Time) (PodPlan, error) {
	known := v.knownClaims()
	ready := ReadyToStart(v.Pod) == corev1.ConditionTrue
	switch {
	case v.Standby(known):
		return v.follow(known), nil
	case ending(v.Pod):
		plan, err := v.unprepare(ctx, known, now)
		return v.orFail(plan, err, now)
	case ready:
		patch, err := v.healthPatch()
		return PodPlan{Prepared: known, Patch: patch}, err
	}
	plan, err := v.prepare(ctx, now)
	return v.orFail(plan, err, now)
}

// follow takes note of what another replica has done for the Pod.
func (v *PodView) follow(known []*resourcev1.ResourceClaim) PodPlan {
	if !Terminal(v.Pod) && ReadyToStart(v.Pod) == corev1.ConditionTrue {
		return PodPlan{Standby: true, Prepared: known}
	}
	return PodPlan{Standby: true, Unprepared: true}
}

// orFail has a Pod that cannot be prepared wait.
func (v *PodView) orFail(plan PodPlan, err error, now time.Time) (PodPlan, error) {
	failure, ok := errors.AsType[*Failure](err)
	if !ok {
		return plan, err
	}
	failed, err := v.Fail(failure, now)
	failed.Prepared = plan.Prepared
	return failed, err
}

// Fail has the Pod wait as the kubelet would after a failure.
func (v *PodView) Fail(failure *Failure, now time.Time) (PodPlan, error) {
	patch, err := v.waitingPatch(now)
	return PodPlan{Failure: failure, Patch: patch, Wait: v.Set.RetryInterval}, err
}

// knownClaims are those of the Pod's claims that the cache has.
func (v *PodView) knownClaims() []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, key := range ClaimKeys(v.Pod) {
		if claim, err := v.Known(key.Name); err == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// prepare prepares the claims of a Pod, all or none. Where the status is faithful, the
// Pod first waits for them.
func (v *PodView) prepare(ctx context.Context, now time.Time) (PodPlan, error) {
	waiting, err := v.waitingPatch(now)
	if err != nil || waiting != nil && v.Set.Faithful {
		return PodPlan{Patch: waiting}, err
	}
	gate, err := v.gate(ctx)
	if err != nil {
		return PodPlan{}, err
	}
	if gate == gateWait {
		return PodPlan{Patch: waiting}, nil
	}
	if left := v.Last.left(v, gate, now); left > 0 {
		return PodPlan{Wait: left}, nil
	}
	claims, err := v.check()
	if _, failed := errors.AsType[*Failure](err); failed && !v.Live {
		return PodPlan{Confirm: true}, nil
	}
	if err != nil || v.Standby(claims) { // the caches may not have had a claim
		return PodPlan{}, err
	}
	entries, err := v.entries(claims, gate)
	if err != nil {
		return PodPlan{}, err
	}
	patch, err := newStatusPatch(v.Pod, PatchReady, startStatus(v.Pod, corev1.ConditionTrue, now))
	return PodPlan{Entries: entries, Patch: patch}, err
}

// gate is what the configuration wants of a Pod now.
type gate int

const (
	gateWait gate = iota
	gatePrepare
	gateFail
)

// gate asks the selectors.
func (v *PodView) gate(ctx context.Context) (gate, error) {
	object := lifecycle.PodObject(v.Pod)
	fail, err := v.Set.FailWhen.Matches(ctx, object)
	if err != nil {
		return gateWait, &Failure{ReasonSelector, err}
	}
	if fail {
		return gateFail, nil
	}
	prepare, err := v.Set.PrepareWhen.Matches(ctx, object)
	if err != nil {
		return gateWait, &Failure{ReasonSelector, err}
	}
	if prepare {
		return gatePrepare, nil
	}
	return gateWait, nil
}

// entries are what all claims of the Pod are to show, or the answer of the first driver
// that fails.
func (v *PodView) entries(claims []*resourcev1.ResourceClaim, gate gate) ([]*Entries, error) {
	var all []*Entries
	for _, claim := range claims {
		if err := v.answer(claim, gate); err != nil {
			return nil, err
		}
		entries, err := v.Driver.Entries(claim, v.Users(claim))
		if err != nil {
			return nil, CannotRender(claim, err)
		}
		all = append(all, entries)
	}
	return all, nil
}

// CannotRender is the Failure of a claim whose entries cannot be worked out.
func CannotRender(claim *resourcev1.ResourceClaim, err error) error {
	return Failed(ReasonTemplate, "NodePrepareResources failed for ResourceClaim %s: %w", claim.Name, err)
}

// answer is what the drivers of a claim answer the kubelet, or have failWhen answer.
func (v *PodView) answer(claim *resourcev1.ResourceClaim, gate gate) error {
	if err := v.Driver.Prepare(claim); err != nil || gate != gateFail {
		return err
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if v.Driver.Has(result.Driver) {
			return Failed(ReasonSimulated, "NodePrepareResources failed for ResourceClaim %s: %s", claim.Name, failureOf(v.Pod))
		}
	}
	return nil
}

// unprepare unprepares the claims of a Pod that ends. As a driver, it writes nothing to
// the claims; the kubelet reports it in the Pod's status, and where nobody does, the
// Pod looks prepared as long as it is there.
func (v *PodView) unprepare(ctx context.Context, known []*resourcev1.ResourceClaim, now time.Time) (PodPlan, error) {
	var plan PodPlan
	ready := ReadyToStart(v.Pod) == corev1.ConditionTrue
	if ready && (v.Set.Faithful || !v.Ended) {
		plan.Prepared = known
	}
	if ready && v.Set.Faithful {
		matched, err := v.Set.UnprepareWhen.Matches(ctx, lifecycle.PodObject(v.Pod))
		if err != nil {
			return plan, &Failure{ReasonSelector, err}
		}
		if matched {
			plan.Patch, err = newStatusPatch(v.Pod, PatchUnprepared, startStatus(v.Pod, corev1.ConditionFalse, now))
		}
		return plan, err
	}
	if v.Set.Faithful || Terminal(v.Pod) {
		plan.Unprepared = true
		return plan, v.unprepareAll(known)
	}
	return plan, nil
}

func (v *PodView) unprepareAll(claims []*resourcev1.ResourceClaim) error {
	for _, claim := range claims {
		if err := v.Driver.Unprepare(claim); err != nil {
			return fmt.Errorf("unprepare ResourceClaim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// waitingPatch gives a Pod the status of one that waits, unless it has it, or its
// containers run without having waited.
func (v *PodView) waitingPatch(now time.Time) (*Patch, error) {
	if ReadyToStart(v.Pod) != "" || !waiting(v.Pod) {
		return nil, nil
	}
	return newStatusPatch(v.Pod, PatchWaiting, waitingStatus(v.Pod, v.Node, now))
}
