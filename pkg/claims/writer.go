package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	resourcev1ac "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/expectations"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// writer writes to Pods and claims what a plan says.
type writer struct {
	observer *observer
	metrics  *metrics
}

// conflict is a lost race for a claim of which the winner's version is known by now.
type conflict struct{ error }

func (c conflict) Unwrap() error { return c.error }

// attempts is how often a claim is tried to be written before its key waits.
const attempts = 5

// retryConflicts calls sync again after a conflict, a few times. Others may write
// a claim so often that only a version that was just read can be written: kube-controller-manager
// 1.36 does where its caches of Pods and claims are not equally late.
// Sync is told which try is the last.
func retryConflicts(sync func(last bool) error) error {
	known := func(err error) bool { _, known := errors.AsType[conflict](err); return known }
	tries := 0
	return retry.OnError(wait.Backoff{Steps: attempts}, known, func() error {
		tries++
		return sync(tries == attempts)
	})
}

// prepareClaim brings a claim to what is wanted for a Pod. Pods that share a claim write it
// one after the other, so the second finds it written, and names the first.
func (w *writer) prepareClaim(ctx context.Context, s *podSync, want *plan.Entries) error {
	states := w.observer.states
	state := states.claimStateOf(want.Claim.UID)
	state.Lock()
	defer state.Unlock()
	state.memory.Unused = time.Time{}
	if err := retryConflicts(func(last bool) error { return w.showEntries(ctx, s, state, want, last) }); err != nil {
		return err
	}
	states.markPrepared(s.state, want.Claim)
	return nil
}

// showEntries writes entries unless the claim shows them. The last try writes any version: who
// writes the claim without end, as kube-controller-manager does (kubernetes#141274), would
// have the Pod wait as long, and the API server refuses entries of what is not allocated.
func (w *writer) showEntries(ctx context.Context, s *podSync, state *claimState, want *plan.Entries, last bool) error {
	claim, err := w.latestClaim(ctx, state, want.Claim)
	if err != nil {
		return err
	}
	if err := w.checkUnchanged(s, want.Claim, claim); err != nil {
		return err
	}
	want.Claim = claim
	// Noted before the write: its answer may be lost, and the cache be late.
	state.memory.Node = facts.NodeOf(claim)
	if want.NamePods { // other Pods may have joined since it was planned
		if want, err = s.view.Driver.Entries(claim, s.view.Claims.Users(claim)); err != nil {
			return err
		}
	}
	if want.Shown() {
		return nil
	}
	write := &plan.ClaimWrite{Operation: plan.WritePrepare, Manager: facts.Manager, Entries: want.Devices, AnyVersion: last}
	return w.writeEntries(ctx, state, claim, write)
}

// confirmUnchanged fails if a claim is no longer what a Pod was planned on, before that Pod is marked ready.
func (w *writer) confirmUnchanged(ctx context.Context, s *podSync, planned *resourcev1.ResourceClaim) error {
	state := w.observer.states.claimStateOf(planned.UID)
	state.Lock()
	defer state.Unlock()
	now, err := w.latestClaim(ctx, state, planned)
	if err != nil {
		return err
	}
	return w.checkUnchanged(s, planned, now)
}

// checkUnchanged fails if a claim has been given back, or allocated otherwise, since a Pod was planned. The plan is made anew then.
func (w *writer) checkUnchanged(s *podSync, planned, now *resourcev1.ResourceClaim) error {
	seen := w.observer.Caches.Claims.Observed(observe.Key(planned))
	gone := seen == nil && s.view.Claims.Known[planned.Name] != nil || seen != nil && seen.UID != planned.UID
	if gone {
		w.observer.states.claims.Delete(planned.UID) // its event may have come before this look
	}
	before, after := planned.Status.Allocation, now.Status.Allocation
	same := !gone && resourceclaim.IsReservedForPod(s.view.Pod, now, true) && after != nil &&
		before.AllocationTimestamp.Equal(after.AllocationTimestamp) && apiequality.Semantic.DeepEqual(before.Devices.Results, after.Devices.Results)
	if same { // parameters are no part of it: the API server may print them anew
		return nil
	}
	return apierrors.NewConflict(resourcev1.Resource("resourceclaims"), planned.Name, fmt.Errorf("its allocation has changed since pod %s was planned", s.key))
}

// writeEntries makes the entries a field manager's only ones in a claim. Entries
// of others are not touched. The UID keeps it from another claim of that name, and, but
// for a last try, the resource version from a claim that has changed since it was looked at:
// another replica may have written it, or new Pods use it. The state keeps what the API server
// says, so that the next look has it also where the cache is late.
func (w *writer) writeEntries(ctx context.Context, state *claimState, claim *resourcev1.ResourceClaim, write *plan.ClaimWrite) error {
	write = withTransitionTimes(claim, write, metav1.Now())
	stored, err := w.applyOrReplace(ctx, claim, write)
	w.metrics.claimWrites.WithLabelValues(write.Operation, loop.Result(err)).Inc()
	if apierrors.IsConflict(err) && w.rereadClaim(ctx, state, claim) {
		err = conflict{err}
	}
	if err != nil {
		return fmt.Errorf("%s ResourceClaim %s: %w", write.Operation, observe.Key(claim), err)
	}
	w.recordAnswer(state, stored)
	return nil
}

// applyOrReplace applies the entries, unless only an update can write the claim.
func (w *writer) applyOrReplace(ctx context.Context, claim *resourcev1.ResourceClaim, write *plan.ClaimWrite) (*resourcev1.ResourceClaim, error) {
	if write.Updates(claim) {
		return w.replaceStatus(ctx, claim, write)
	}
	status := resourcev1ac.ResourceClaimStatus()
	for i := range write.Entries {
		status.WithDevices(applyEntry(&write.Entries[i]))
	}
	config := resourcev1ac.ResourceClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithStatus(status)
	if !write.AnyVersion {
		config.WithResourceVersion(claim.ResourceVersion)
	}
	stored, err := w.observer.Client.ResourceV1().ResourceClaims(claim.Namespace).ApplyStatus(ctx, config, metav1.ApplyOptions{FieldManager: write.Manager, Force: true})
	if changesAllocation(err) {
		return w.replaceStatus(ctx, claim, write)
	}
	return stored, err
}

// changesAllocation reports whether the API server takes a patch for a change of the
// allocation. It prints opaque parameters anew for every patch, sorted and without spaces,
// and what controllers in Go have written is often not so printed.
func changesAllocation(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsInvalid(err) && status.ErrStatus.Details != nil &&
		slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "status.allocation" })
}

// replaceStatus updates the whole status, which keeps opaque parameters byte for byte.
func (w *writer) replaceStatus(ctx context.Context, claim *resourcev1.ResourceClaim, write *plan.ClaimWrite) (*resourcev1.ResourceClaim, error) {
	claims := w.observer.Client.ResourceV1().ResourceClaims(claim.Namespace)
	live, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	live.UID = claim.UID
	if !write.AnyVersion {
		live.ResourceVersion = claim.ResourceVersion // of an older claim, it is a conflict
	}
	write.Replace(live)
	return claims.UpdateStatus(ctx, live, metav1.UpdateOptions{FieldManager: write.Manager})
}

// withTransitionTimes gives the conditions to write their times. A condition that the claim shows
// keeps its own.
func withTransitionTimes(claim *resourcev1.ResourceClaim, write *plan.ClaimWrite, now metav1.Time) *plan.ClaimWrite {
	result := *write
	result.Entries = slices.Clone(write.Entries)
	for i := range result.Entries {
		entry := &result.Entries[i]
		entry.Conditions = slices.Clone(entry.Conditions)
		for j := range entry.Conditions {
			entry.Conditions[j].LastTransitionTime = since(claim, facts.EntryID(entry), entry.Conditions[j], now)
		}
	}
	return &result
}

// rereadClaim reads a claim, and reports whether it has changed. Where it cannot be read,
// the next try waits for the cache.
func (w *writer) rereadClaim(ctx context.Context, state *claimState, claim *resourcev1.ResourceClaim) bool {
	live, err := w.observer.Client.ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil || live.UID != claim.UID {
		return false
	}
	w.recordAnswer(state, live)
	return live.ResourceVersion != claim.ResourceVersion
}

// applyEntry is an entry to apply.
func applyEntry(entry *resourcev1.AllocatedDeviceStatus) *resourcev1ac.AllocatedDeviceStatusApplyConfiguration {
	config := resourcev1ac.AllocatedDeviceStatus().WithDriver(entry.Driver).WithPool(entry.Pool).WithDevice(entry.Device)
	if entry.ShareID != nil {
		config.WithShareID(*entry.ShareID)
	}
	for _, condition := range entry.Conditions {
		config.WithConditions(metav1ac.Condition().
			WithType(condition.Type).
			WithStatus(condition.Status).
			WithReason(condition.Reason).
			WithMessage(condition.Message).
			WithLastTransitionTime(condition.LastTransitionTime))
	}
	if entry.Data != nil {
		config.WithData(*entry.Data)
	}
	if network := entry.NetworkData; network != nil {
		config.WithNetworkData(&resourcev1ac.NetworkDeviceDataApplyConfiguration{
			InterfaceName: notEmpty(network.InterfaceName), IPs: network.IPs, HardwareAddress: notEmpty(network.HardwareAddress),
		})
	}
	return config
}

func notEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// since is when a condition of an entry came to have its status: by what the
// claim shows, or else now.
func since(claim *resourcev1.ResourceClaim, id facts.DeviceID, condition metav1.Condition, now metav1.Time) metav1.Time {
	if entry := facts.EntryOf(claim, id); entry != nil {
		if former := meta.FindStatusCondition(entry.Conditions, condition.Type); former != nil && former.Status == condition.Status {
			return former.LastTransitionTime
		}
	}
	return now
}

// recordAnswer notes what the API server has answered of a claim.
func (w *writer) recordAnswer(state *claimState, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	slim := observe.SlimClaim(claim)
	state.unseen.Answered(slim)
	w.observer.states.claimWrites.Begin(observe.Key(slim))
	return slim
}

// latestClaim returns the newest known version of a claim. What was read before the
// state was locked may be out of date by now, as may be the cache: then the API
// server's answer to the last write is newer. If the cache does not see that write in time, or the API server
// has gone back to a backup, the claim is what the API server has.
func (w *writer) latestClaim(ctx context.Context, state *claimState, claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	key, seen := observe.Key(claim), w.observer.Caches.Claims.Observed(observe.Key(claim))
	if seen == nil || seen.UID != claim.UID {
		return newerClaim(claim, state.unseen.Answer()), nil
	}
	freshness := state.unseen.Compare(seen.ResourceVersion)
	if w.observer.states.isRestored() {
		freshness = expectations.Doubtful
	}
	switch freshness {
	case expectations.Current:
		w.observer.states.claimWrites.End(key)
		if cached.Older(claim.ResourceVersion, seen.ResourceVersion) {
			return seen.Decode(), nil
		}
		return claim, nil
	case expectations.Behind:
		w.observer.states.claimWrites.Begin(key)
		return newerClaim(claim, state.unseen.Answer()), nil
	}
	live, err := w.observer.liveClaim(ctx, claim.Namespace, claim.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != claim.UID:
		return claim, nil // which nobody can write any more
	case err != nil:
		return nil, fmt.Errorf("get ResourceClaim %s: %w", key, err)
	}
	return w.recordAnswer(state, live), nil
}

// newerClaim returns the newer one of two versions of a claim. The second may be nil.
func newerClaim(claim, other *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	if other != nil && cached.Older(claim.ResourceVersion, other.ResourceVersion) {
		return other
	}
	return claim
}

// patchPod writes a part of a Pod's status, and goes on with the Pod as it is then. An older
// API server does not warn of fields that it does not have.
func (w *writer) patchPod(ctx context.Context, s *podSync, patch *plan.Patch) error {
	encoded, err := json.Marshal(patch.Content)
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", s.key, err)
	}
	pod := s.view.Pod
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore}
	stored, err := w.observer.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, patch.Type, encoded, options, "status")
	w.metrics.podWrites.WithLabelValues(patch.Operation, loop.Result(err)).Inc()
	if err != nil {
		return fmt.Errorf("write status of pod %s: %w", s.key, err)
	}
	facts.KeepClaimNames(stored, pod)
	s.view.Pod = w.observer.states.recordAnswer(s.state, stored)
	return nil
}
