package claims

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// unprepareEventInterval is how often an event repeats why the claims of a Pod cannot be unprepared. Drivers are asked
// more often.
const unprepareEventInterval = 10 * time.Minute

// configPollInterval is how often a waiting Pod checks whether any configuration is active.
const configPollInterval = 2 * time.Second

// reportPrepareFailure reports a failure as the kubelet does, and schedules the retry.
func (r *podReconciler) reportPrepareFailure(ctx context.Context, s *podSync, failure *plan.Failure, delay time.Duration) {
	r.states.metrics.failures.WithLabelValues(failure.Reason).Inc()
	r.finishOperation(s, nil, failure)
	r.emitEvent(s, v1alpha1.ReasonFailedPrepare, plan.EventMessage(failure))
	if r.Kubelets != nil {
		r.Kubelets.Acknowledge(s.view.Pod, s.view.Node, failure)
	}
	retry := time.Now().Add(delay)
	if s.isWaiting() {
		r.states.recordFailure(s.key, s.state.uid, failure, retry)
	}
	s.state.memory.Last, s.state.memory.PendingSince = plan.NewLastFailure(s.view, failure, retry), time.Time{}
	klog.FromContext(ctx).V(2).Info("Failed to prepare the claims of the pod",
		"pod", s.key, "node", s.view.Node.Name, "reason", failure.Reason, "err", failure.Err)
	r.loop.AddAfter(s.key, delay)
}

// reportUnprepareFailure reports that the claims of a Pod that ends cannot be unprepared yet, and schedules the retry.
func (r *podReconciler) reportUnprepareFailure(ctx context.Context, s *podSync, failure *plan.Failure, delay time.Duration) {
	r.finishOperation(s, nil, failure)
	if r.Kubelets != nil {
		r.Kubelets.Acknowledge(s.view.Pod, s.view.Node, failure)
	}
	s.state.memory.UnprepareFailed = true
	if last := &s.state.unprepareEvent; last.message != failure.Error() || time.Since(last.at) >= unprepareEventInterval {
		*last = reportedFailure{failure.Error(), time.Now()}
		r.emitEvent(s, v1alpha1.ReasonFailedUnprepare, plan.UnprepareEventMessage(failure))
		klog.FromContext(ctx).V(2).Info("Failed to unprepare the claims of the pod", "pod", s.key, "node", s.view.Node.Name, "reason", failure.Reason, "err", failure.Err)
	}
	r.loop.AddAfter(s.key, delay)
}

// reportError reports an error of the API server that lasts, and handles a failure that was found while writing. Other
// errors are returned for the loop to retry.
func (r *podReconciler) reportError(ctx context.Context, s *podSync, err error) error {
	failure, failed := errors.AsType[*plan.Failure](err)
	switch {
	case failed:
		next := s.view.Fail(failure, time.Now())
		return r.applyPlan(ctx, s, &next)
	case loop.LostRace(err): // the Pod or the claim is gone or has changed
		return err
	}
	r.states.metrics.failures.WithLabelValues(plan.ReasonAPI).Inc()
	// The API server returns Invalid for what a status may not contain for lack of permission.
	isForbidden := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Forbidden:")
	if isForbidden || r.loop.NumRequeues(s.key) >= loop.FailuresBeforeEvent {
		r.emitEvent(s, v1alpha1.ReasonFailedPrepare, plan.EventMessage(err))
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
	r.emitEvent(s, v1alpha1.ReasonFailedPrepare, plan.EventMessage(plan.Failed(plan.ReasonUnsettled, "no configuration is in force: %w", pending)))
}

// emitEvent emits a warning on the Pod in the name of its node's kubelet.
func (r *podReconciler) emitEvent(s *podSync, reason string, message error) {
	recorder := r.Events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: s.view.Node.Name})
	recorder.Event(s.view.Pod, corev1.EventTypeWarning, reason, v1alpha1.EventMessage(message))
}
