package claims

import (
	"context"
	"errors"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// claimReconciler keeps the entries of claims in step with the Pods that use them.
type claimReconciler struct {
	observer *observer
	writer   *writer
	loop     *loop.Loop[types.NamespacedName]
}

// reconcile repeats syncClaim a few times while others write the claim.
func (r *claimReconciler) reconcile(ctx context.Context, key types.NamespacedName) error {
	return retryConflicts(func(bool) error { return r.syncClaim(ctx, key) })
}

// syncClaim writes at most once, since the event of the write requeues the claim.
func (r *claimReconciler) syncClaim(ctx context.Context, key types.NamespacedName) error {
	o := r.observer
	claim, err := o.Caches.Claims.Get(key)
	set := o.Config.Current()
	if err != nil || set == nil {
		return nil
	}
	state := o.states.claimStateOf(claim.UID)
	state.Lock()
	defer state.Unlock()
	node := facts.NodeOf(claim)
	isFake := o.Caches.Nodes.Has(node)
	if isFake {
		state.memory.Node = node
	}
	if !o.Owner.Acts(node, isFake) {
		return nil
	}
	if claim, err = r.writer.latestClaim(ctx, state, claim); err != nil {
		return err
	}
	view := o.claimView(set, claim, state.memory)
	next, planErr := plan.ForClaim(ctx, view, time.Now())
	if next.NeedsUncached {
		if view.Uncached, err = o.readUncachedConsumers(ctx, view.Claim); err != nil {
			return errors.Join(planErr, err)
		}
		view.Memory = next.Memory
		next, planErr = plan.ForClaim(ctx, view, time.Now())
	}
	state.memory = next.Memory
	if next.Wait > 0 {
		r.loop.AddAfter(key, next.Wait)
	}
	if next.Write == nil {
		return planErr
	}
	return errors.Join(planErr, r.writer.writeEntries(ctx, state, view.Claim, next.Write))
}

// claimView returns what the caches say of a claim.
func (o *observer) claimView(set *config.Set, claim *resourcev1.ResourceClaim, memory plan.ClaimMemory) *plan.ClaimView {
	consumers := o.Caches.Pods.Consumers(claim)
	v := &plan.ClaimView{
		Claim: claim, Set: set, Nodes: o.Caches.Nodes, Memory: memory,
		Consumers: consumers, Users: o.preparedConsumers(claim, consumers, ""),
	}
	if len(v.Users) > 0 && templates.NamePods(set) {
		if node := o.Caches.Nodes.Get(v.Users[0].Spec.NodeName); node != nil {
			v.Driver = o.newDriver(&plan.PodView{Node: node, Set: set}, o.DriverPods.On(node.Name))
		}
	}
	return v
}
