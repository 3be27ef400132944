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

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// writer writes to Pods and claims what a plan says.
type writer struct {
	observer *observer
	metrics  *metrics
}

// conflict is a lost race for a claim. The winner's version has been read.
type conflict struct{ error }

func (c conflict) Unwrap() error { return c.error }

// conflictAttempts is how often a write of a claim is tried before the loop's backoff applies.
const conflictAttempts = 5

// retryConflicts calls sync until it returns no conflict, a few times, and says which try is the last. Others may write a
// claim so often that only a version that was just read can be written: kube-controller-manager 1.36 does so while its caches
// of Pods and claims differ.
func retryConflicts(sync func(isLast bool) error) error {
	isConflict := func(err error) bool { _, is := errors.AsType[conflict](err); return is }
	tries := 0
	return retry.OnError(wait.Backoff{Steps: conflictAttempts}, isConflict, func() error {
		tries++
		return sync(tries == conflictAttempts)
	})
}

// prepareClaim makes a claim show the entries that a Pod needs. Pods that share a claim write it one after the other, so
// the second finds it written, and names the first.
func (w *writer) prepareClaim(ctx context.Context, s *podSync, want *plan.Entries) error {
	state := w.observer.states.claimStateOf(want.Claim.UID)
	state.Lock()
	defer state.Unlock()
	state.memory.UnusedSince = time.Time{}
	err := retryConflicts(func(isLast bool) error {
		claim, err := w.latestClaim(ctx, state, want.Claim)
		if err == nil {
			err = w.checkUnchanged(s, want.Claim, claim)
		}
		if err != nil {
			return err
		}
		want.Claim = claim
		// Recorded before the write, since its answer may get lost and the cache be late.
		state.memory.Node = facts.NodeOf(claim)
		entries := want
		if want.NamePods { // other Pods may use the claim since the plan was made
			if entries, err = s.view.Driver.Entries(claim, s.view.Claims.Users(claim)); err != nil {
				return err
			}
		}
		if entries.Shown() {
			return nil
		}
		// The last try writes any version. A controller that keeps writing the claim (kubernetes#141274) would keep the Pod
		// waiting otherwise, and the API server rejects entries of devices that are not allocated.
		return w.writeEntries(ctx, state, claim, &plan.ClaimWrite{
			Operation: plan.WritePrepare, Manager: facts.Manager, Entries: entries.Devices, AnyVersion: isLast,
		})
	})
	if err == nil {
		w.observer.states.markPrepared(s.state, want.Claim)
	}
	return err
}

// confirmUnchanged returns a conflict if a claim has changed since the Pod was planned. It runs before the Pod becomes ready.
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

// checkUnchanged returns a conflict if a claim was deleted, deallocated or allocated again since the Pod was planned.
func (w *writer) checkUnchanged(s *podSync, planned, now *resourcev1.ResourceClaim) error {
	seen := w.observer.Caches.Claims.Observed(observe.Key(planned))
	isGone := seen == nil && s.view.Claims.Known[planned.Name] != nil || seen != nil && seen.UID != planned.UID
	if isGone {
		w.observer.states.claims.Delete(planned.UID) // its deletion may have been handled before claimStateOf
	}
	before, after := planned.Status.Allocation, now.Status.Allocation
	isUnchanged := !isGone && resourceclaim.IsReservedForPod(s.view.Pod, now, true) && after != nil &&
		before.AllocationTimestamp.Equal(after.AllocationTimestamp) && apiequality.Semantic.DeepEqual(before.Devices.Results, after.Devices.Results)
	if isUnchanged { // parameters do not count: the API server may reformat them
		return nil
	}
	return apierrors.NewConflict(resourcev1.Resource("resourceclaims"), planned.Name, fmt.Errorf("its allocation has changed since pod %s was planned", s.key))
}

// writeEntries makes the entries a field manager's only ones in a claim, and touches no entries of others. The UID protects
// another claim of the name. The resource version, except in a last try, protects a claim that has changed since: another
// replica may have written it, or new Pods use it. The state keeps the claim that the API server returns, for the next look.
func (w *writer) writeEntries(ctx context.Context, state *claimState, claim *resourcev1.ResourceClaim, planned *plan.ClaimWrite) error {
	write, now := *planned, metav1.Now()
	write.Entries = slices.Clone(write.Entries)
	for i := range write.Entries {
		entry := &write.Entries[i]
		entry.Conditions = slices.Clone(entry.Conditions)
		for j := range entry.Conditions {
			entry.Conditions[j].LastTransitionTime = transitionTime(claim, facts.EntryID(entry), entry.Conditions[j], now)
		}
	}
	stored, err := w.applyOrUpdate(ctx, claim, &write)
	w.metrics.claimWrites.WithLabelValues(write.Operation, loop.Result(err)).Inc()
	if apierrors.IsConflict(err) && w.rereadClaim(ctx, state, claim) {
		err = conflict{err}
	}
	if err != nil {
		return fmt.Errorf("%s ResourceClaim %s: %w", write.Operation, observe.Key(claim), err)
	}
	w.recordClaimAnswer(state, stored)
	return nil
}

// applyOrUpdate writes the entries by server-side apply, or by an update if nothing else can write the claim.
func (w *writer) applyOrUpdate(ctx context.Context, claim *resourcev1.ResourceClaim, write *plan.ClaimWrite) (*resourcev1.ResourceClaim, error) {
	if write.NeedsUpdate(claim) {
		return w.updateStatus(ctx, claim, write)
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
		return w.updateStatus(ctx, claim, write)
	}
	return stored, err
}

// changesAllocation reports whether the API server rejected a patch because it would change the allocation. The API server
// reformats opaque parameters in each patch, sorted and without spaces; controllers in Go often store another format.
func changesAllocation(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsInvalid(err) && status.ErrStatus.Details != nil &&
		slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "status.allocation" })
}

// updateStatus updates the whole status, which keeps opaque parameters byte for byte.
func (w *writer) updateStatus(ctx context.Context, claim *resourcev1.ResourceClaim, write *plan.ClaimWrite) (*resourcev1.ResourceClaim, error) {
	claims := w.observer.Client.ResourceV1().ResourceClaims(claim.Namespace)
	live, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	live.UID = claim.UID
	if !write.AnyVersion {
		live.ResourceVersion = claim.ResourceVersion // an older one is a conflict
	}
	write.Replace(live)
	return claims.UpdateStatus(ctx, live, metav1.UpdateOptions{FieldManager: write.Manager})
}

// rereadClaim reads a claim and reports whether it has changed. If it cannot be read, the next try waits for the cache.
func (w *writer) rereadClaim(ctx context.Context, state *claimState, claim *resourcev1.ResourceClaim) bool {
	live, err := w.observer.Client.ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil || live.UID != claim.UID {
		return false
	}
	w.recordClaimAnswer(state, live)
	return live.ResourceVersion != claim.ResourceVersion
}

// applyEntry converts an entry to its apply configuration.
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
		data := &resourcev1ac.NetworkDeviceDataApplyConfiguration{IPs: network.IPs}
		if network.InterfaceName != "" {
			data.WithInterfaceName(network.InterfaceName)
		}
		if network.HardwareAddress != "" {
			data.WithHardwareAddress(network.HardwareAddress)
		}
		config.WithNetworkData(data)
	}
	return config
}

// transitionTime returns when a condition of an entry got its status. It is now unless the claim shows the condition.
func transitionTime(claim *resourcev1.ResourceClaim, id facts.DeviceID, condition metav1.Condition, now metav1.Time) metav1.Time {
	if entry := facts.EntryOf(claim, id); entry != nil {
		if former := meta.FindStatusCondition(entry.Conditions, condition.Type); former != nil && former.Status == condition.Status {
			return former.LastTransitionTime
		}
	}
	return now
}

// recordClaimAnswer records a version of a claim that the API server has returned.
func (w *writer) recordClaimAnswer(state *claimState, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	slim := observe.SlimClaim(claim)
	state.unseen.Answered(slim)
	w.observer.states.claimWrites.Begin(observe.Key(slim))
	return slim
}

// latestClaim returns the newest known version of a claim, whose state must be locked. The given version may be stale, and
// so may the cache, in which case the API server's answer to our last write is newer. If the cache does not get that write
// in time, or etcd was restored, latestClaim reads the claim from the API server.
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
		return claim, nil // writing it fails, since its UID is gone
	case err != nil:
		return nil, fmt.Errorf("get ResourceClaim %s: %w", key, err)
	}
	return w.recordClaimAnswer(state, live), nil
}

// newerClaim returns the newer one of two versions of a claim. Other may be nil.
func newerClaim(claim, other *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	if other != nil && cached.Older(claim.ResourceVersion, other.ResourceVersion) {
		return other
	}
	return claim
}

// patchPod patches a Pod's status, and replaces the view's Pod by the result. Fields that an older API server does not know
// are ignored, without a warning.
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
	s.view.Pod = w.observer.states.recordPodAnswer(s.state, stored)
	return nil
}
