package claims

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/claims/templates"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/expectations"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// retryJitter is what the kubelet adds to the time between two syncs of a Pod, as
// a share of it (workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go).
const retryJitter = 0.5

// podReconciler prepares and unprepares the claims of Pods.
type podReconciler struct {
	observer *observer
	writer   *writer
	loop     *loop.Loop[types.NamespacedName]
	// healthDropped says that the API server drops allocatedResourcesStatus, since its
	// feature gate ResourceHealthStatus is off. Each healthAskInterval it is asked again.
	healthDropped, healthDropReported atomic.Bool
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
	pod := o.Caches.Pods.Get(key)
	if pod == nil {
		r.recordGonePod(o.states.forgetPod(key, ""))
		return nil
	}
	r.recordGonePod(o.states.forgetPod(key, pod.UID))
	state := o.states.podStateOf(key, pod.UID)
	set, node := o.Config.Current(), o.Caches.Nodes.Get(pod.Spec.NodeName)
	if node == nil {
		o.states.markUnprepared(state)
		return nil
	}
	pod, err := o.freshestPod(ctx, state, pod)
	if pod == nil || err != nil {
		return err
	}
	if set == nil {
		r.reportMissingConfig(&podSync{key, state, &plan.PodView{Pod: pod, Node: node}})
		return nil
	}
	s := &podSync{key, state, o.podView(&plan.PodView{Pod: pod, Node: node, Set: set, Memory: state.memory})}
	r.startOperation(s)
	return r.reportError(ctx, s, r.syncPod(ctx, s))
}

// freshestPod returns the Pod that the cache has, or nil as long as the cache has not seen our last write. If it does not see
// that in time, the Pod is what the API server has.
func (o *observer) freshestPod(ctx context.Context, state *podState, pod *corev1.Pod) (*corev1.Pod, error) {
	key, last := observe.Key(pod), state.unseen.Answer()
	switch state.unseen.Compare(pod.ResourceVersion) {
	case expectations.Current:
		o.states.podWrites.End(key)
		return pod, nil
	case expectations.Behind:
		o.states.podWrites.Begin(key) // which brings the Pod back, should the event of the write not do so
		return nil, nil
	}
	live, err := o.Client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.UID != pod.UID {
		o.states.podWrites.Begin(key) // until the cache knows that it is gone
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get pod %s: %w", key, err)
	}
	if cached.Older(live.ResourceVersion, string(last)) {
		klog.FromContext(ctx).Info("The API server has an older version of the pod than it answered before, as after a restore of etcd from a backup", "pod", key)
		o.states.recordRestore()
	}
	facts.KeepClaimNames(live, pod)
	return o.states.recordAnswer(state, live), nil
}

// podView adds what the caches say to a view.
func (o *observer) podView(v *plan.PodView) *plan.PodView {
	v.Claims.Users = func(claim *resourcev1.ResourceClaim) []*corev1.Pod {
		return o.preparedConsumers(claim, o.Caches.Pods.Consumers(claim), v.Pod.UID)
	}
	v.Standby = func(claims []*resourcev1.ResourceClaim) bool { return !o.actsFor(v.Node, claims) }
	v.Driver = o.driverOf(v, o.DriverPods.On(v.Node.Name))
	return v
}

// driverOf answers for the drivers of a view, by the driver Pods.
func (o *observer) driverOf(v *plan.PodView, pods devices.Pods) plan.Driver {
	return o.newDriver(v.Pod, v.Node, v.Set, templates.Slices{Have: o.Caches.Slices.HaveDevice, Of: func(driver string) (bool, error) {
		if published := o.hasSlices(v.Set, v.Node, driver); published || v.Claims.Live == nil {
			return published, nil
		}
		published, isRead := v.Claims.Live.HaveSlices[driver]
		if !isRead {
			return false, &plan.Need{Slices: driver}
		}
		return published, nil
	}}, pods)
}

// confirm has a view rest on what the API server has.
func (o *observer) confirm(ctx context.Context, v *plan.PodView) error {
	v.Claims.Live = plan.NewLive()
	if !slices.ContainsFunc(v.Set.Templates, func(t *devices.Template) bool { return t.DriverPod != nil }) {
		return nil
	}
	pods, err := o.DriverPods.Live(ctx, v.Set.Templates, v.Node)
	if err == nil {
		v.Driver = o.driverOf(v, pods)
	}
	return err
}

// syncPod plans, applies the plan, and plans again from what the API server answers, until
// there is nothing to write.
func (r *podReconciler) syncPod(ctx context.Context, s *podSync) error {
	for last := ""; ; {
		s.view.Claims.Known = r.observer.Caches.Claims.Of(s.view.Pod) // the cache may have got others while the last plan was applied
		s.view.HealthDropped = r.healthDropped.Load()
		next, err := r.planPod(ctx, s)
		if next != nil {
			r.recordProgress(s, next)
		}
		if err != nil {
			return err
		}
		if next.Patch != nil && next.Patch.Operation == last {
			return nil // what was written is not shown: its event comes
		}
		if err := r.applyPlan(ctx, s, next); err != nil || next.Patch == nil || next.Failure != nil {
			return err
		}
		last = next.Patch.Operation
	}
}

// planPod plans, and reads from the API server what the plan needs. The plan is nil where its view could not
// be confirmed.
func (r *podReconciler) planPod(ctx context.Context, s *podSync) (*plan.PodPlan, error) {
	if s.view.Claims.Live != nil {
		s.view.Claims.Live = plan.NewLive() // what was read for the last plan is out of date
	}
	next, err := plan.ForPod(ctx, s.view, time.Now())
	if next.Confirm {
		if err := r.observer.confirm(ctx, s.view); err != nil {
			return nil, err
		}
		next, err = plan.ForPod(ctx, s.view, time.Now())
	}
	for err == nil && next.Need != nil {
		if err = r.observer.readNeed(ctx, s.view, next.Need); err == nil {
			next, err = plan.ForPod(ctx, s.view, time.Now())
		}
	}
	return &next, err
}

// isWaiting reports whether the Pod waits for its claims, and for this replica.
func (s *podSync) isWaiting() bool {
	pod := s.view.Pod
	return !s.state.standby && !facts.IsEnding(pod) && facts.ReadyToStart(pod) != corev1.ConditionTrue
}

// recordProgress keeps the account of what is prepared, and of what waits for that.
func (r *podReconciler) recordProgress(s *podSync, next *plan.PodPlan) {
	s.state.standby = next.Standby
	if s.isWaiting() {
		r.observer.states.recordWaiting(s.key, s.state.uid)
	} else {
		r.observer.states.forgetWaiting(s.state.uid)
	}
	r.observer.states.markPrepared(s.state, next.Prepared...)
	if next.Unprepared {
		unused := len(s.state.claims) == 0
		if asked := r.observer.states.markUnprepared(s.state); !unused && !next.Standby {
			r.finishOperation(s, asked, nil)
		}
		if !next.Standby {
			s.state.memory.Ended = facts.IsTerminal(s.view.Pod)
		}
	}
}

// applyPlan writes what the plan says, claims first.
func (r *podReconciler) applyPlan(ctx context.Context, s *podSync, next *plan.PodPlan) error {
	for _, entries := range next.Entries {
		if err := r.writer.prepareClaim(ctx, s, entries); err != nil {
			return err
		}
	}
	for _, entries := range next.Entries { // others may have taken a claim back while the entries were written
		if err := r.writer.confirmUnchanged(ctx, s, entries.Claim); err != nil {
			return err
		}
	}
	if next.Call != nil {
		r.observer.Kubelets.Call(s.view.Pod, s.view.Node, next.Call, s.view.Set.HasDriver)
	}
	switch {
	case next.Failure != nil:
		r.reportPrepareFailure(ctx, s, next.Failure, wait.Jitter(next.Wait, retryJitter))
	case next.UnprepareFailure != nil:
		r.reportUnprepareFailure(ctx, s, next.UnprepareFailure, next.Wait)
	case next.Wait > 0: // between two tries
		s.state.operation.name = ""
		r.loop.AddAfter(s.key, next.Wait)
	}
	if next.Patch == nil {
		return nil
	}
	err := r.writer.patchPod(ctx, s, next.Patch)
	switch operation := next.Patch.Operation; {
	case operation == plan.PatchHealth && apierrors.IsInvalid(err):
		klog.FromContext(ctx).V(2).Info("The containers of the pod have changed", "pod", s.key, "err", err)
		return nil // the change comes as an event
	case err != nil:
		return err
	case operation == plan.PatchReady:
		s.state.memory.Last, s.view.Memory.Last = nil, nil
		r.observer.states.recordReady(s.key, s.state.uid)
		r.finishOperation(s, driversOfClaims(s.view), nil)
		klog.FromContext(ctx).V(2).Info("Prepared the claims of the pod", "pod", s.key, "node", s.view.Node.Name)
	case operation == plan.PatchHealth:
		r.recordHealthSupport(ctx, s.view.Pod.Status.ContainerStatuses)
	}
	return nil
}

// unprepareEventInterval is how often an event repeats why the claims of a Pod cannot be unprepared. Drivers are asked more often.
const unprepareEventInterval = 10 * time.Minute

// reportUnprepareFailure reports that the claims of a Pod that ends cannot be unprepared yet. They are tried again after a while.
func (r *podReconciler) reportUnprepareFailure(ctx context.Context, s *podSync, failure *plan.Failure, retry time.Duration) {
	r.finishOperation(s, driversOfClaims(s.view), failure)
	s.state.memory.UnprepareFailed = true
	if told := &s.state.unprepareEvent; told.message != failure.Error() || time.Since(told.at) >= unprepareEventInterval {
		*told = toldFailure{failure.Error(), time.Now()}
		r.emitEvent(s, v1alpha1.ReasonFailedUnprepare, plan.UnprepareEventMessage(failure))
		klog.FromContext(ctx).V(2).Info("Could not unprepare the claims of the pod", "pod", s.key, "node", s.view.Node.Name, "reason", failure.Reason, "err", failure.Err)
	}
	r.loop.AddAfter(s.key, retry)
}

// reportPrepareFailure tells of a failure. The Pod is tried again after a while.
func (r *podReconciler) reportPrepareFailure(ctx context.Context, s *podSync, failure *plan.Failure, retry time.Duration) {
	r.observer.states.metrics.failures.WithLabelValues(failure.Reason).Inc()
	r.finishOperation(s, driversOfClaims(s.view), failure)
	r.emitFailedPrepare(s, failure)
	next := time.Now().Add(retry)
	if s.isWaiting() {
		r.observer.states.recordFailure(s.key, s.state.uid, failure, next)
	}
	s.state.memory.Last = plan.NewLastFailure(s.view, failure, next)
	klog.FromContext(ctx).V(2).Info("Could not prepare the claims of the pod",
		"pod", s.key, "node", s.view.Node.Name, "reason", failure.Reason, "err", failure.Err)
	r.loop.AddAfter(s.key, retry)
}

// reportError reports that the API server has refused something, or does not answer.
func (r *podReconciler) reportError(ctx context.Context, s *podSync, err error) error {
	failure, failed := errors.AsType[*plan.Failure](err)
	switch {
	case failed: // found while writing
		next := s.view.Fail(failure, time.Now())
		return r.applyPlan(ctx, s, &next)
	case err == nil, loop.LostRace(err): // the Pod or the claim is gone, or another one has its name
		return err
	}
	r.observer.states.metrics.failures.WithLabelValues(plan.ReasonAPI).Inc()
	// The API server refuses as invalid what a status may not contain for lack of permission.
	forbidden := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Forbidden:")
	if forbidden || r.loop.Failures(s.key) >= loop.Patience {
		r.emitFailedPrepare(s, err)
	}
	return err
}

// untilKnown is how often it is looked whether anything is in force, or why not.
const untilKnown = 2 * time.Second

// reportMissingConfig tells a Pod that waits while nothing is in force why that is so, once. All Pods are
// looked at again once something is.
func (r *podReconciler) reportMissingConfig(s *podSync) {
	if !s.isWaiting() {
		return
	}
	r.loop.AddAfter(s.key, untilKnown)
	pending := r.observer.Config.Pending()
	if pending == nil || pending.Error() == s.state.pending {
		return
	}
	if claims := slices.Collect(maps.Values(r.observer.Caches.Claims.Of(s.view.Pod))); !r.observer.actsFor(s.view.Node, claims) {
		return
	}
	s.state.pending = pending.Error()
	r.observer.states.metrics.failures.WithLabelValues(plan.ReasonUnsettled).Inc()
	r.emitFailedPrepare(s, plan.Failed(plan.ReasonUnsettled, "no configuration is in force: %w", pending))
}

// emitEvent tells of a failure in the name of the node's kubelet.
func (r *podReconciler) emitEvent(s *podSync, reason string, message error) {
	recorder := r.observer.Events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: s.view.Node.Name})
	recorder.Event(s.view.Pod, corev1.EventTypeWarning, reason, v1alpha1.EventMessage(message))
}

// emitFailedPrepare tells that the claims of a Pod cannot be prepared, as the kubelet does.
func (r *podReconciler) emitFailedPrepare(s *podSync, err error) {
	r.emitEvent(s, v1alpha1.ReasonFailedPrepare, plan.EventMessage(err))
}
