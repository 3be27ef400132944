package claims

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
)

// retryJitter is what the kubelet adds to the time between two syncs of a Pod, as
// a share of it (workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go).
const retryJitter = 0.5

// podReconciler prepares and unprepares the claims of Pods.
type podReconciler struct {
	observer *observer
	writer   *writer
	ledger   *ledger
	metrics  *metrics
	events   record.EventBroadcaster
	loop     *loop.Loop[types.NamespacedName]
	// healthDropped says that the API server drops allocatedResourcesStatus, since its
	// feature gate ResourceHealthStatus is off.
	healthDropped atomic.Bool
}

// podSync is one look at a Pod.
type podSync struct {
	key   types.NamespacedName
	state *podState
	view  *plan.PodView
}

// reconcile does for a Pod all that can be done now.
func (r *podReconciler) reconcile(ctx context.Context, key types.NamespacedName) error {
	o := r.observer
	pod := o.caches.Pods.Get(key)
	if pod == nil {
		r.ledger.markUnprepared(o.states.forgetPod(key))
		return nil
	}
	state, former := o.states.pod(key, pod.UID)
	r.ledger.markUnprepared(former)
	set, node := o.config.Current(), o.caches.Nodes.Get(pod.Spec.NodeName)
	if node == nil {
		r.ledger.markUnprepared(state)
	}
	if set == nil || node == nil || state.unseen.Behind(pod.ResourceVersion) {
		return nil
	}
	s := &podSync{key, state, o.podView(ctx, set, node, pod, state)}
	return r.report(ctx, s, r.sync(ctx, s))
}

// sync plans, applies the plan, and plans again from what the API server answers, until
// there is nothing to write.
func (r *podReconciler) sync(ctx context.Context, s *podSync) error {
	for last := ""; ; {
		next, err := r.plan(ctx, s)
		r.mark(s, &next)
		if err != nil {
			return err
		}
		if next.Patch != nil && next.Patch.Operation == last {
			return nil // what was written is not shown: its event comes
		}
		if err := r.apply(ctx, s, &next); err != nil || next.Patch == nil || next.Failure != nil {
			return err
		}
		last = next.Patch.Operation
	}
}

// plan asks the API server where the caches may lag.
func (r *podReconciler) plan(ctx context.Context, s *podSync) (plan.PodPlan, error) {
	s.view.HealthDropped = r.healthDropped.Load()
	next, err := plan.ForPod(ctx, s.view, time.Now())
	if err != nil || !next.Confirm {
		return next, err
	}
	r.observer.live(ctx, s.view)
	return plan.ForPod(ctx, s.view, time.Now())
}

// mark keeps the account of what is prepared.
func (r *podReconciler) mark(s *podSync, next *plan.PodPlan) {
	s.state.standby = next.Standby
	r.ledger.markPrepared(s.state, next.Prepared...)
	if !next.Unprepared {
		return
	}
	r.ledger.markUnprepared(s.state)
	if !next.Standby {
		s.state.ended = plan.Terminal(s.view.Pod)
	}
}

// apply writes what the plan says, claims first.
func (r *podReconciler) apply(ctx context.Context, s *podSync, next *plan.PodPlan) error {
	for _, entries := range next.Entries {
		if err := r.writer.prepare(ctx, s, entries); err != nil {
			return err
		}
	}
	switch {
	case next.Failure != nil:
		r.loop.AddAfter(s.key, r.failed(ctx, s, next.Failure, next.Wait))
	case next.Wait > 0:
		r.loop.AddAfter(s.key, next.Wait)
	}
	if next.Patch == nil {
		return nil
	}
	err := r.writer.patchPod(ctx, s, next.Patch)
	if next.Patch.Operation == plan.PatchHealth && apierrors.IsInvalid(err) {
		klog.FromContext(ctx).V(2).Info("The containers of the pod have changed", "pod", s.key, "err", err)
		return nil // the change comes as an event
	}
	if err != nil {
		return err
	}
	switch next.Patch.Operation {
	case plan.PatchReady:
		s.state.last, s.view.Last = nil, nil
		r.metrics.ready(r.observer.states.boundAt(s.state))
		klog.FromContext(ctx).V(2).Info("Prepared the claims of the pod", "pod", s.key, "node", s.view.Node.Name)
	case plan.PatchHealth:
		r.learnHealth(ctx, s.view.Pod)
	}
	return nil
}

// learnHealth notes whether the API server keeps what was written.
func (r *podReconciler) learnHealth(ctx context.Context, pod *corev1.Pod) {
	for _, status := range pod.Status.ContainerStatuses {
		if len(status.AllocatedResourcesStatus) > 0 {
			return
		}
	}
	if len(pod.Status.ContainerStatuses) > 0 {
		r.healthDropped.Store(true)
		klog.FromContext(ctx).Info("The API server does not keep allocatedResourcesStatus of Pods: its feature gate ResourceHealthStatus is off")
	}
}

// failed tells of a failure, and returns when the Pod is to be tried again.
func (r *podReconciler) failed(ctx context.Context, s *podSync, failure *plan.Failure, interval time.Duration) time.Duration {
	r.metrics.failures.WithLabelValues(failure.Reason).Inc()
	r.event(s, failure)
	retry := wait.Jitter(interval, retryJitter)
	s.state.last = plan.NewLastFailure(s.view, failure, time.Now().Add(retry))
	klog.FromContext(ctx).V(2).Info("Could not prepare the claims of the pod", "pod", s.key, "node", s.view.Node.Name, "reason", failure.Reason, "err", failure.Err)
	return retry
}

// report reports that the API server has refused something, or does not answer.
func (r *podReconciler) report(ctx context.Context, s *podSync, err error) error {
	failure, failed := errors.AsType[*plan.Failure](err)
	switch {
	case failed: // found while writing
		next, err := s.view.Fail(failure, time.Now())
		if err != nil {
			return err
		}
		return r.apply(ctx, s, &next)
	case err == nil, loop.LostRace(err): // the Pod or the claim is gone, or another one has its name
		return err
	}
	r.metrics.failures.WithLabelValues(plan.ReasonAPI).Inc()
	if forbidden(err) || r.loop.Failures(s.key) >= loop.Patience {
		r.event(s, err)
	}
	return err
}

// forbidden reports whether an answer remains the same however often the request
// is repeated. The API server refuses as invalid what a status may not contain for
// lack of permission.
func forbidden(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Forbidden:")
}

// event tells of a failure in the name of the node's kubelet.
func (r *podReconciler) event(s *podSync, err error) {
	recorder := r.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: s.view.Node.Name})
	recorder.Event(s.view.Pod, corev1.EventTypeWarning, v1alpha1.ReasonFailedPrepare, v1alpha1.EventMessage(plan.EventMessage(err)))
}
