package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// retryJitter is the share by which the kubelet extends the time between two syncs of a Pod
// (workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go).
const retryJitter = 0.5

// repeatEventInterval is how often an event repeats why the claims of a Pod cannot be unprepared, or why a Pod cannot be
// bound. Both are tried more often.
const repeatEventInterval = 10 * time.Minute

// configPollInterval is how often a waiting Pod checks whether any configuration is active.
const configPollInterval = 2 * time.Second

// podReconciler prepares and unprepares the claims of Pods.
type podReconciler struct {
	*writer
	loop *loop.Loop[types.NamespacedName]
}

// podSync is one look at a Pod.
type podSync struct {
	key   types.NamespacedName
	state *podState
	view  *plan.PodView
	// ofTemplates answers for those drivers of the view's Driver that have templates.
	ofTemplates *templates.Driver
}

// reconcile does everything for a Pod that can be done now.
func (r *podReconciler) reconcile(ctx context.Context, key types.NamespacedName) error {
	pod := r.Caches.Pods.Get(key)
	if pod == nil {
		r.states.forgetPod(key, "")
		return nil
	}
	r.states.forgetPod(key, pod.UID)
	state := r.states.podStateOf(key, pod.UID)
	node := r.Caches.Nodes.Get(pod.Spec.NodeName)
	if node == nil { // not a fake one, or deleted
		r.states.markUnprepared(state)
		return nil
	}
	// Until the cache has our last write, its Pod is stale. If it does not get that write in time, the API server is asked.
	switch answer := r.states.podAnswers.Answer(key); answer.Compare(pod.ResourceVersion) {
	case expectations.Current:
		r.states.podAnswers.Forget(key)
	case expectations.Behind:
		r.states.podAnswers.Postpone(key, r.loop.Add)
		return nil
	case expectations.Doubtful:
		live, err := r.Client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && live.UID != pod.UID {
			return nil // the cache will drop the Pod
		}
		if err != nil {
			return fmt.Errorf("get pod %s: %w", key, err)
		}
		if cached.Older(live.ResourceVersion, answer.Version) {
			klog.FromContext(ctx).Info("The API server returned an older version of the pod than before; etcd may have been restored from a backup", "pod", key)
			r.states.restoredAt.Store(time.Now().UnixNano())
		}
		facts.KeepClaimNames(live, pod)
		pod = r.states.recordPodAnswer(live, true)
	}
	view := &plan.PodView{Pod: pod, Node: node, Set: r.Config.Current(), Memory: state.memory}
	view.Standby = func(claims []*resourcev1.ResourceClaim) bool { return !r.actsFor(node, claims) }
	view.Claims.Users = func(claim *resourcev1.ResourceClaim) []*corev1.Pod {
		return r.preparedConsumers(claim, r.Caches.Pods.Consumers(claim), pod.UID)
	}
	s := &podSync{key: key, state: state, view: view}
	if view.Set == nil {
		r.reportMissingConfig(s)
		return nil
	}
	view.Driver, s.ofTemplates = r.newDriver(view, r.DriverPods.On(node.Name))
	state.recorder.Begin(pod, r.states.dueSince(key, state))
	err := r.syncPod(ctx, s)
	if failure, failed := errors.AsType[*plan.Failure](err); failed { // found while writing
		next := view.Fail(failure, time.Now())
		return r.applyPlan(ctx, s, &next)
	}
	if err == nil || loop.LostRace(err) { // the Pod or the claim is gone or has changed
		return err
	}
	r.states.metrics.failures.WithLabelValues(plan.ReasonAPI).Inc()
	// The API server returns Invalid for what a status may not contain for lack of permission.
	isForbidden := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Forbidden:")
	if isForbidden || r.loop.NumRequeues(key) >= loop.FailuresBeforeEvent {
		r.emitEvent(s.view.Pod, s.kubelet(), v1alpha1.ReasonFailedPrepare, plan.FailureMessage(err))
	}
	return err
}

// reportMissingConfig emits one event on a Pod that waits because no configuration is active. Activating a configuration
// requeues all Pods.
func (r *podReconciler) reportMissingConfig(s *podSync) {
	if !s.isWaiting() {
		return
	}
	r.loop.AddAfter(s.key, configPollInterval)
	pending := r.Config.Pending()
	if pending == nil || pending.Error() == s.state.reportedPending {
		return
	}
	if claims := slices.Collect(maps.Values(r.Caches.Claims.Of(s.view.Pod))); s.view.Standby(claims) {
		return
	}
	s.state.reportedPending = pending.Error()
	r.states.metrics.failures.WithLabelValues(plan.ReasonUnsettled).Inc()
	r.emitEvent(s.view.Pod, s.kubelet(), v1alpha1.ReasonFailedPrepare, plan.FailureMessage(plan.Failed(plan.ReasonUnsettled, "no configuration is in force: %w", pending)))
}

// syncPod plans and applies until nothing is left to write: each write of the Pod's status returns the Pod
// that the next plan is made of. What a plan needs beside the caches is read before the plan is made again.
func (r *podReconciler) syncPod(ctx context.Context, s *podSync) error {
	for last := ""; ; {
		s.view.Claims.Known = r.Caches.Claims.Of(s.view.Pod) // may have changed while the last plan was applied
		if r.DeviceHealth != nil {
			s.view.Health = r.DeviceHealth.Shown()
		}
		next, err := plan.ForPod(ctx, s.view, time.Now())
		for err == nil && next.Need != nil {
			if err = r.readNeed(ctx, s.view, next.Need); err == nil {
				next, err = plan.ForPod(ctx, s.view, time.Now())
			}
		}
		r.recordProgress(s, &next)
		if err != nil {
			return err
		}
		if next.Patch != nil && next.Patch.Operation == last {
			return nil // the API server did not return the change; wait for its watch event
		}
		if err := r.applyPlan(ctx, s, &next); err != nil || next.Patch == nil || next.Failure != nil {
			return err
		}
		last = next.Patch.Operation
	}
}

// recordProgress keeps the account of what is prepared, and of the Pods that wait for that.
func (r *podReconciler) recordProgress(s *podSync, next *plan.PodPlan) {
	states := r.states
	s.state.standby = next.Standby
	if s.isWaiting() {
		states.recordWaiting(s.state.uid, waiting{pod: s.key, reason: preparing})
	} else {
		states.forgetWaiting(s.state.uid)
	}
	states.markPrepared(s.state, next.Prepared...)
	if !next.Unprepared {
		return
	}
	wasPrepared := len(s.state.claims) > 0
	drivers := states.markUnprepared(s.state)
	if next.Standby {
		return
	}
	if wasPrepared {
		s.finishOperation(drivers, nil)
	}
	s.state.memory.Ended = facts.IsTerminal(s.view.Pod)
}

// isWaiting reports whether the Pod waits for its claims and for this replica.
func (s *podSync) isWaiting() bool {
	return !s.state.standby && !facts.IsEnding(s.view.Pod) && facts.ReadyToStart(s.view.Pod) != corev1.ConditionTrue
}

// applyPlan writes what a plan says: entries of claims first, then the Pod's status.
func (r *podReconciler) applyPlan(ctx context.Context, s *podSync, next *plan.PodPlan) error {
	for _, entries := range next.Entries {
		if err := r.prepareClaim(ctx, s, entries); err != nil {
			return err
		}
	}
	for _, entries := range next.Entries { // a claim may have been deallocated while the others were written
		state := r.states.claimStateOf(entries.Claim.UID)
		state.Lock()
		_, err := r.confirmClaim(ctx, s, entries.Claim)
		state.Unlock()
		if err != nil {
			return err
		}
	}
	if next.Call != nil {
		r.Kubelets.Call(s.view.Pod, s.view.Node, next.Call, s.view.Set.HasDriver)
	}
	r.recordOutcome(ctx, s, next)
	if next.Patch == nil {
		return nil
	}
	return r.patchPod(ctx, s, next.Patch)
}

// recordOutcome tells the user and the driver of a failure, and says when to look at the Pod again.
func (r *podReconciler) recordOutcome(ctx context.Context, s *podSync, next *plan.PodPlan) {
	failure, logger := next.Failure, klog.FromContext(ctx).V(2)
	if next.Outcome == plan.PrepareFailed || next.Outcome == plan.UnprepareFailed {
		s.finishOperation(nil, failure)
		if r.Kubelets != nil {
			r.Kubelets.Acknowledge(s.view.Pod, s.view.Node, failure)
		}
	}
	switch next.Outcome {
	case plan.PrepareFailed:
		r.states.metrics.failures.WithLabelValues(failure.Reason).Inc()
		r.emitEvent(s.view.Pod, s.kubelet(), v1alpha1.ReasonFailedPrepare, plan.FailureMessage(failure))
		delay := wait.Jitter(next.Wait, retryJitter)
		retry := time.Now().Add(delay)
		if s.isWaiting() {
			r.states.recordWaiting(s.state.uid, waiting{s.key, failure.Reason, failure.Error(), retry})
		}
		s.state.memory.Last, s.state.memory.PendingSince = plan.NewLastFailure(s.view, failure, retry), time.Time{}
		logger.Info("Failed to prepare the claims of the pod", "pod", s.key, "node", s.view.Node.Name, "reason", failure.Reason, "err", failure.Err)
		r.loop.AddAfter(s.key, delay)
	case plan.UnprepareFailed:
		s.state.memory.UnprepareFailed = true
		if s.state.unprepareEvent.isDue(s.view.Pod, failure) {
			r.emitEvent(s.view.Pod, s.kubelet(), v1alpha1.ReasonFailedUnprepare, plan.UnprepareFailureMessage(failure))
			logger.Info("Failed to unprepare the claims of the pod", "pod", s.key, "node", s.view.Node.Name, "reason", failure.Reason, "err", failure.Err)
		}
		r.loop.AddAfter(s.key, next.Wait)
	case plan.PreparePending:
		if s.state.memory.PendingSince.IsZero() {
			s.state.memory.PendingSince = time.Now()
		}
		r.states.recordWaiting(s.state.uid, waiting{s.key, failure.Reason, failure.Error(), time.Now().Add(next.Wait)})
		r.loop.AddAfter(s.key, next.Wait)
	case plan.Unhindered:
		if next.Wait > 0 { // between two tries
			s.state.recorder.Pause()
			r.loop.AddAfter(s.key, next.Wait)
		}
	}
}

// patchPod patches a Pod's status, and replaces the view's Pod by the result; what was read for the plan is out of date then.
func (r *podReconciler) patchPod(ctx context.Context, s *podSync, patch *plan.Patch) error {
	encoded, err := json.Marshal(patch.Content)
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", s.key, err)
	}
	pod, logger := s.view.Pod, klog.FromContext(ctx)
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore} // without a warning of fields that an older API server does not know
	stored, err := r.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, patch.Type, encoded, options, "status")
	r.states.metrics.podWrites.WithLabelValues(patch.Operation, loop.Result(err)).Inc()
	if err != nil {
		err = fmt.Errorf("write status of pod %s: %w", s.key, err)
		if patch.Operation == plan.PatchHealth && apierrors.IsInvalid(err) {
			logger.V(2).Info("The containers of the pod have changed; waiting for the event", "pod", s.key, "err", err)
			return nil
		}
		return err
	}
	facts.KeepClaimNames(stored, pod)
	s.view.Pod = r.states.recordPodAnswer(stored, false)
	if s.view.Claims.Live != nil {
		s.view.Claims.Live = plan.NewLive()
	}
	switch patch.Operation {
	case plan.PatchReady:
		s.state.memory.Last, s.view.Memory.Last = nil, nil
		r.states.recordReady(s.key, s.state.uid)
		s.finishOperation(nil, nil)
		logger.V(2).Info("Prepared the claims of the pod", "pod", s.key, "node", s.view.Node.Name)
	case plan.PatchHealth:
		r.DeviceHealth.Stored(ctx, stored)
	}
	return nil
}

// enqueueLivePods queues up to count Pods that have not ended.
func (r *podReconciler) enqueueLivePods(count int) {
	for pod := range r.Caches.Pods.All() {
		if count <= 0 {
			return
		}
		if pod.HasClaims() && !pod.Terminal && r.Caches.Nodes.Has(pod.Node) && r.Owner.Acts(pod.Node, true) {
			r.loop.Add(observe.Key(pod))
			count--
		}
	}
}

// kubelet is the source of events in the name of the kubelet of the Pod's node.
func (s *podSync) kubelet() corev1.EventSource {
	return corev1.EventSource{Component: "kubelet", Host: s.view.Node.Name}
}
