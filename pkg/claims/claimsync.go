package claims

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
)

// claimReconciler keeps the entries of claims up to date with the Pods that use them.
type claimReconciler struct {
	observer *observer
	writer   *writer
	loop     *loop.Loop[types.NamespacedName]
}

// reconcile writes at most once: the event of the write brings the claim back.
func (r *claimReconciler) reconcile(ctx context.Context, key types.NamespacedName) error {
	o := r.observer
	claim, err := o.caches.Claims.Get(key)
	set := o.config.Current()
	if err != nil || set == nil {
		return nil
	}
	state := o.states.claim(claim.UID)
	state.Lock()
	defer state.Unlock()
	node := plan.NodeOf(claim)
	fake := o.caches.Nodes.Has(node)
	if fake {
		state.node = node
	}
	if !o.owner.Acts(node, fake) {
		return nil
	}
	view := o.claimView(set, r.writer.latest(state, claim), state)
	next, planErr := plan.ForClaim(ctx, view, time.Now())
	if next.Confirm {
		if view.Unknown, err = o.unknown(ctx, view.Claim); err != nil {
			return errors.Join(planErr, err)
		}
		view.Live, view.Memory = true, next.Memory
		next, planErr = plan.ForClaim(ctx, view, time.Now())
	}
	state.memory = next.Memory
	if next.Wait > 0 {
		r.loop.AddAfter(key, next.Wait)
	}
	if next.Write == nil {
		return planErr
	}
	return errors.Join(planErr, r.writer.apply(ctx, state, view.Claim, next.Write))
}
