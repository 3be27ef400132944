package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// writer writes to Pods and claims what a plan says.
type writer struct{ *observer }

// conflict is a lost race for a claim. The winner's version has been read.
type conflict struct{ error }

func (c conflict) Unwrap() error { return c.error }

// conflictAttempts is how often a write of a claim is tried before the loop's backoff applies.
const conflictAttempts = 5

// retryConflicts calls sync until it returns no conflict, a few times, and says which try is the last. Others may write a
// claim so often that only a version that was just read can be written: kube-controller-manager 1.36 does so while its caches
// of Pods and claims differ.
func retryConflicts(sync func(isLast bool) error) error {
	for try := 1; ; try++ {
		err := sync(try == conflictAttempts)
		if _, isConflict := errors.AsType[conflict](err); !isConflict || try == conflictAttempts {
			return err
		}
	}
}

// prepareClaim makes a claim show the entries that a Pod needs. Pods that share a claim write it one after the other, so
// the second finds it written, and names the first.
func (w *writer) prepareClaim(ctx context.Context, s *podSync, want *plan.Entries) error {
	state := w.states.claimStateOf(want.Claim.UID)
	state.Lock()
	defer state.Unlock()
	state.memory.UnusedSince = time.Time{}
	err := retryConflicts(func(isLast bool) error {
		claim, err := w.confirmClaim(ctx, s, want.Claim)
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
		return w.writeEntries(ctx, claim, &plan.ClaimWrite{
			Operation: plan.WritePrepare, Manager: facts.Manager, Entries: entries.Devices, AnyVersion: isLast, NamePods: entries.NamePods,
		})
	})
	if err == nil {
		w.states.markPrepared(s.state, want.Claim)
	}
	return err
}

// confirmClaim returns the newest version of a claim, or a conflict if the claim was deleted, deallocated or allocated again
// since the Pod was planned. The state must be locked.
func (w *writer) confirmClaim(ctx context.Context, s *podSync, planned *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	now, err := w.latestClaim(ctx, planned)
	if err != nil {
		return nil, err
	}
	seen := w.Caches.Claims.Observed(observe.Key(planned))
	isGone := seen == nil && s.view.Claims.Known[planned.Name] != nil || seen != nil && seen.UID != planned.UID
	if isGone {
		w.states.claims.Delete(planned.UID) // its deletion may have been handled before claimStateOf
	}
	before, after := planned.Status.Allocation, now.Status.Allocation
	if !isGone && resourceclaim.IsReservedForPod(s.view.Pod, now, true) && after != nil && before.AllocationTimestamp.Equal(after.AllocationTimestamp) &&
		apiequality.Semantic.DeepEqual(before.Devices.Results, after.Devices.Results) { // parameters do not count: the API server may reformat them
		return now, nil
	}
	return nil, apierrors.NewConflict(resourcev1.Resource("resourceclaims"), planned.Name, fmt.Errorf("its allocation has changed since pod %s was planned", s.key))
}

// entriesPatch is what a field manager applies to a claim. The UID protects another claim of the name. The resource version,
// if set, protects a claim that has changed since: another replica may have written it, or new Pods use it.
type entriesPatch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Devices []resourcev1.AllocatedDeviceStatus `json:"devices,omitempty"`
	} `json:"status"`
}

// withTransitionTimes returns a copy of entries in which each condition has the time when it got its status. It is now unless
// the claim shows the condition.
func withTransitionTimes(claim *resourcev1.ResourceClaim, entries []resourcev1.AllocatedDeviceStatus, now metav1.Time) []resourcev1.AllocatedDeviceStatus {
	timed := slices.Clone(entries)
	for i := range timed {
		shown := facts.EntryOf(claim, facts.EntryID(&timed[i]))
		timed[i].Conditions = slices.Clone(timed[i].Conditions)
		for j := range timed[i].Conditions {
			condition := &timed[i].Conditions[j]
			condition.LastTransitionTime = now
			if shown == nil {
				continue
			}
			if former := meta.FindStatusCondition(shown.Conditions, condition.Type); former != nil && former.Status == condition.Status {
				condition.LastTransitionTime = former.LastTransitionTime
			}
		}
	}
	return timed
}

// writeEntries makes the entries a field manager's only ones in a claim, and touches no entries of others. It applies them,
// or updates the claim if nothing else can write it. The claim's state must be locked. The claim that the API server returns
// is kept for the next look.
func (w *writer) writeEntries(ctx context.Context, claim *resourcev1.ResourceClaim, planned *plan.ClaimWrite) error {
	write := *planned
	write.Entries = withTransitionTimes(claim, write.Entries, metav1.Now())
	patch := entriesPatch{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: claim.Namespace, UID: claim.UID},
	}
	patch.Status.Devices = write.Entries
	if !write.AnyVersion {
		patch.ResourceVersion = claim.ResourceVersion
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode entries of ResourceClaim %s: %w", observe.Key(claim), err)
	}
	claims := w.Client.ResourceV1().ResourceClaims(claim.Namespace)
	var stored *resourcev1.ResourceClaim
	needsUpdate := slices.ContainsFunc(claim.ManagedFields, func(field metav1.ManagedFieldsEntry) bool { // which applying cannot withdraw
		return field.Manager == write.Manager && field.Operation == metav1.ManagedFieldsOperationUpdate
	})
	if !needsUpdate {
		options := metav1.PatchOptions{FieldManager: write.Manager, Force: new(true), FieldValidation: metav1.FieldValidationIgnore}
		stored, err = claims.Patch(ctx, claim.Name, types.ApplyPatchType, encoded, options, "status")
		// The API server reformats opaque parameters in each patch, sorted and without spaces. It rejects that as a change of the
		// allocation if they were stored in another format, as controllers in Go often do.
		status, ok := errors.AsType[*apierrors.StatusError](err)
		needsUpdate = ok && apierrors.IsInvalid(err) && status.ErrStatus.Details != nil &&
			slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "status.allocation" })
	}
	if needsUpdate { // the whole status, which keeps opaque parameters byte for byte
		if stored, err = claims.Get(ctx, claim.Name, metav1.GetOptions{}); err == nil {
			stored.UID = claim.UID
			if !write.AnyVersion {
				stored.ResourceVersion = claim.ResourceVersion // an older one is a conflict
			}
			write.Replace(stored)
			stored, err = claims.UpdateStatus(ctx, stored, metav1.UpdateOptions{FieldManager: write.Manager})
		}
	}
	w.states.metrics.claimWrites.WithLabelValues(write.Operation, loop.Result(err)).Inc()
	if apierrors.IsConflict(err) { // if the claim cannot be read, or has not changed, the next try waits for the cache
		live, readErr := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		if readErr == nil && live.UID == claim.UID {
			w.recordClaimAnswer(live, true)
			if live.ResourceVersion != claim.ResourceVersion {
				err = conflict{err}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s ResourceClaim %s: %w", write.Operation, observe.Key(claim), err)
	}
	w.recordClaimAnswer(stored, write.AnyVersion || write.NamePods) // what others have written before is not known with any version
	return nil
}

// recordClaimAnswer records a version of a claim that the API server has returned. AwaitsEvent says that its event requeues
// the claim.
func (w *writer) recordClaimAnswer(claim *resourcev1.ResourceClaim, awaitsEvent bool) *resourcev1.ResourceClaim {
	slim := observe.SlimClaim(claim)
	w.states.claimAnswers.Answered(observe.Key(slim), slim, slim.ResourceVersion, awaitsEvent)
	return slim
}

// latestClaim returns the newest known version of a claim, whose state must be locked. The given version may be stale, and
// so may the cache, in which case the API server's answer to our last write is newer. If the cache does not get that write
// in time, or etcd was restored, latestClaim reads the claim from the API server.
func (w *writer) latestClaim(ctx context.Context, claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	newest, key := claim, observe.Key(claim)
	answer := w.states.claimAnswers.Answer(key)
	if answer.Content != nil && answer.Content.UID == claim.UID && cached.Older(claim.ResourceVersion, answer.Version) {
		newest = answer.Content
	}
	seen := w.Caches.Claims.Observed(key)
	if seen == nil || seen.UID != claim.UID {
		return newest, nil
	}
	freshness := answer.Compare(seen.ResourceVersion)
	if time.Since(time.Unix(0, w.states.restoredAt.Load())) < staleAfterRestore {
		freshness = expectations.Doubtful // no known version of an object is reliable
	}
	switch freshness {
	case expectations.Current:
		w.states.claimAnswers.Forget(key)
		if cached.Older(claim.ResourceVersion, seen.ResourceVersion) {
			return seen.Decode(), nil
		}
		return claim, nil
	case expectations.Behind:
		return newest, nil
	}
	live, err := w.Client.ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != claim.UID:
		return claim, nil // writing it fails, since its UID is gone
	case err != nil:
		return nil, fmt.Errorf("get ResourceClaim %s: %w", key, err)
	}
	return w.recordClaimAnswer(live, true), nil
}

// emitEvent emits a warning on a Pod.
func (w *writer) emitEvent(pod *corev1.Pod, source corev1.EventSource, reason string, message error) {
	recorder := w.Events.NewRecorder(scheme.Scheme, source)
	recorder.Event(pod, corev1.EventTypeWarning, reason, v1alpha1.EventMessage(message))
}
