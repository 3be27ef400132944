package claims

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// retryJitter is the share by which the kubelet extends the time between two syncs of a Pod
// (workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go).
const retryJitter = 0.5

// podReconciler prepares and unprepares the claims of Pods.
type podReconciler struct {
	*writer
	loop *loop.Loop[types.NamespacedName]
	// healthDropped says that the API server drops allocatedResourcesStatus, since its feature gate
	// ResourceHealthStatus is off. It is reset each healthRetryInterval, to try again.
	healthDropped, healthDropReported atomic.Bool
}

// podSync is one look at a Pod.
type podSync struct {
	key   types.NamespacedName
	state *podState
	view  *plan.PodView
}

// reconcile does everything for a Pod that can be done now.
func (r *podReconciler) reconcile(ctx context.Context, key types.NamespacedName) error {
	pod := r.Caches.Pods.Get(key)
	if pod == nil {
		r.recordGonePod(r.states.forgetPod(key, ""))
		return nil
	}
	r.recordGonePod(r.states.forgetPod(key, pod.UID))
	state := r.states.podStateOf(key, pod.UID)
	node := r.Caches.Nodes.Get(pod.Spec.NodeName)
	if node == nil { // not a fake one, or deleted
		r.states.markUnprepared(state)
		return nil
	}
	pod, err := r.freshestPod(ctx, state, pod)
	if pod == nil || err != nil {
		return err
	}
	view := &plan.PodView{Pod: pod, Node: node, Set: r.Config.Current(), Memory: state.memory}
	view.Standby = func(claims []*resourcev1.ResourceClaim) bool { return !r.actsFor(node, claims) }
	view.Claims.Users = func(claim *resourcev1.ResourceClaim) []*corev1.Pod {
		return r.preparedConsumers(claim, r.Caches.Pods.Consumers(claim), pod.UID)
	}
	s := &podSync{key, state, view}
	if view.Set == nil {
		r.reportMissingConfig(s)
		return nil
	}
	view.Driver = r.newDriver(view, r.DriverPods.On(node.Name))
	r.startOperation(s)
	if err := r.syncPod(ctx, s); err != nil {
		return r.reportError(ctx, s, err)
	}
	return nil
}

// freshestPod returns the cached Pod, or nil until the cache has our last write. If the cache does not get that write in
// time, freshestPod returns the Pod that the API server has.
func (o *observer) freshestPod(ctx context.Context, state *podState, pod *corev1.Pod) (*corev1.Pod, error) {
	key, last := observe.Key(pod), state.unseen.Answer()
	switch state.unseen.Compare(pod.ResourceVersion) {
	case expectations.Current:
		o.states.podWrites.End(key)
		return pod, nil
	case expectations.Behind:
		o.states.podWrites.Begin(key) // requeues the Pod if the event of the write never comes
		return nil, nil
	}
	live, err := o.Client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.UID != pod.UID {
		o.states.podWrites.Begin(key) // until the cache drops the Pod
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get pod %s: %w", key, err)
	}
	if cached.Older(live.ResourceVersion, string(last)) {
		klog.FromContext(ctx).Info("The API server returned an older version of the pod than before; etcd may have been restored from a backup", "pod", key)
		o.states.restoredAt.Store(time.Now().UnixNano())
	}
	facts.KeepClaimNames(live, pod)
	return o.states.recordPodAnswer(state, live), nil
}

// syncPod plans and applies until nothing is left to write: each write of the Pod's status returns the Pod
// that the next plan is made of. What a plan needs beside the caches is read before the plan is made again.
func (r *podReconciler) syncPod(ctx context.Context, s *podSync) error {
	for last := ""; ; {
		s.view.Claims.Known = r.Caches.Claims.Of(s.view.Pod) // may have changed while the last plan was applied
		s.view.HealthDropped = r.healthDropped.Load()
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
		states.recordWaiting(s.key, s.state.uid)
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
		r.finishOperation(s, drivers, nil)
	}
	s.state.memory.Ended = facts.IsTerminal(s.view.Pod)
}

// isWaiting reports whether the Pod waits for its claims and for this replica.
func (s *podSync) isWaiting() bool {
	pod := s.view.Pod
	return !s.state.standby && !facts.IsEnding(pod) && facts.ReadyToStart(pod) != corev1.ConditionTrue
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
		_, err := r.confirmClaim(ctx, s, state, entries.Claim)
		state.Unlock()
		if err != nil {
			return err
		}
	}
	if next.Call != nil {
		r.Kubelets.Call(s.view.Pod, s.view.Node, next.Call, s.view.Set.HasDriver)
	}
	switch {
	case next.Failure != nil:
		r.reportPrepareFailure(ctx, s, next.Failure, wait.Jitter(next.Wait, retryJitter))
	case next.UnprepareFailure != nil:
		r.reportUnprepareFailure(ctx, s, next.UnprepareFailure, next.Wait)
	case next.Pending != nil:
		if s.state.memory.PendingSince.IsZero() {
			s.state.memory.PendingSince = time.Now()
		}
		r.states.recordFailure(s.key, s.state.uid, next.Pending, time.Now().Add(next.Wait))
		r.loop.AddAfter(s.key, next.Wait)
	case next.Wait > 0: // between two tries
		s.state.operation.name = ""
		r.loop.AddAfter(s.key, next.Wait)
	}
	if next.Patch == nil {
		return nil
	}
	err := r.patchPod(ctx, s, next.Patch)
	switch operation := next.Patch.Operation; {
	case operation == plan.PatchHealth && apierrors.IsInvalid(err):
		klog.FromContext(ctx).V(2).Info("The containers of the pod have changed; waiting for the event", "pod", s.key, "err", err)
		return nil
	case err != nil:
		return err
	case operation == plan.PatchReady:
		s.state.memory.Last, s.view.Memory.Last = nil, nil
		r.states.recordReady(s.key, s.state.uid)
		r.finishOperation(s, nil, nil)
		klog.FromContext(ctx).V(2).Info("Prepared the claims of the pod", "pod", s.key, "node", s.view.Node.Name)
	case operation == plan.PatchHealth:
		r.recordHealthSupport(ctx, s.view.Pod.Status.ContainerStatuses)
	}
	return nil
}
