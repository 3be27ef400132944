package claims

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// claimReconciler keeps the entries of claims in step with the Pods that use them.
type claimReconciler struct {
	*writer
	loop *loop.Loop[types.NamespacedName]
}

// reconcile writes at most once, since the event of the write requeues the claim. It is repeated a few times while others
// write the claim.
func (r *claimReconciler) reconcile(ctx context.Context, key types.NamespacedName) error {
	claim, set := r.Caches.Claims.Get(key), r.Config.Current()
	if claim == nil || set == nil {
		return nil
	}
	state := r.states.claimStateOf(claim.UID)
	state.Lock()
	defer state.Unlock()
	node := facts.NodeOf(claim)
	isFake := r.Caches.Nodes.Has(node)
	if isFake {
		state.memory.Node = node
	}
	if !r.Owner.Acts(node, isFake) {
		return nil
	}
	claim, err := r.latestClaim(ctx, claim)
	if err != nil {
		return err
	}
	view := &plan.ClaimView{Claim: claim, Set: set, Nodes: claimNodes{r.observer, claim}, Memory: state.memory, Consumers: r.Caches.Pods.Consumers(claim)}
	view.Users = r.preparedConsumers(claim, view.Consumers, "")
	namesPods := func(t *devices.Template) bool { return t.ClaimStatus.UsesPods }
	if len(view.Users) > 0 && slices.ContainsFunc(set.Templates, namesPods) {
		if node := r.Caches.Nodes.Get(view.Users[0].Spec.NodeName); node != nil {
			view.Driver, _ = r.newDriver(&plan.PodView{Node: node, Set: set}, r.DriverPods.On(node.Name))
		}
	}
	next := plan.ForClaim(ctx, view, time.Now())
	if next.NeedsUncached {
		if view.Uncached, err = r.readUncachedConsumers(ctx, claim); err != nil {
			return err
		}
		view.Memory = next.Memory
		next = plan.ForClaim(ctx, view, time.Now())
	}
	state.memory = next.Memory
	if next.Wait > 0 {
		r.loop.AddAfter(key, next.Wait)
	}
	if next.Failure != nil {
		r.reportFailure(ctx, state, next.Failure)
	}
	if next.Write == nil {
		return nil
	}
	if err := r.writeEntries(ctx, claim, next.Write); err != nil {
		return err
	}
	if next.Write.Operation == plan.WritePrepare {
		state.memory.Renewed = time.Now()
	}
	r.states.claimAnswers.Postpone(key, r.loop.Add)
	return nil
}

// reportFailure reports why it is not known which binding conditions a Pod should get. No node has the Pod yet, so the event is
// kwok-dra's own.
func (r *claimReconciler) reportFailure(ctx context.Context, state *claimState, failure *plan.BindingFailure) {
	r.states.metrics.failures.WithLabelValues(failure.Reason).Inc()
	if state.bindingEvent.isDue(failure.Pod, failure.Failure) {
		klog.FromContext(ctx).Info("Failed to plan the binding conditions for the pod", "pod", klog.KObj(failure.Pod), "reason", failure.Reason, "err", failure.Err)
		r.emitEvent(failure.Pod, corev1.EventSource{Component: v1alpha1.ManagedByValue}, v1alpha1.ReasonFailedPrepare, plan.FailureMessage(failure.Failure))
	}
}
