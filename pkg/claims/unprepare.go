package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// withdrawDelay is how long a claim that no Pod uses keeps its entries. As a
// rule the claim controller deallocates it by then, and the API server drops the
// entries of devices that are not allocated.
const withdrawDelay = 5 * time.Second

// bindingPatience is how often it is looked whether a Pod is still being bound.
const bindingPatience = time.Minute

// unprepare unprepares the claims of a Pod that ends. As a driver, it writes
// nothing to the claims; the kubelet reports it in the Pod's status.
func (p *Preparer) unprepare(ctx context.Context, a *attempt) error {
	ready := readyToStart(a.pod) == corev1.ConditionTrue
	if ready && (a.set.Faithful || !a.state.ended) {
		p.use(a, p.knownClaims(a.pod))
	}
	if ready && a.set.Faithful {
		matched, err := a.set.UnprepareWhen.Matches(ctx, a.object)
		if err != nil {
			return &prepareError{reasonSelector, err}
		}
		if !matched {
			return nil
		}
		if err := p.patchStatus(ctx, a, "unprepared", startStatus(a.pod, corev1.ConditionFalse, time.Now())); err != nil {
			return err
		}
	}
	if a.set.Faithful || terminal(a.pod) {
		p.release(a.state)
		a.state.ended = terminal(a.pod)
	}
	return nil
}

// use notes that the claims are prepared for the Pod, as the kubelet's
// checkpoint does.
func (p *Preparer) use(a *attempt, claims []*resourcev1.ResourceClaim) {
	for _, claim := range claims {
		if slices.Contains(a.state.claims, claim.UID) {
			continue
		}
		a.state.claims = append(a.state.claims, claim.UID)
		if !p.states.use(claim.UID, a.pod.UID) {
			continue
		}
		p.changes.Add(1)
		if !a.state.followed {
			p.metrics.prepares.Inc()
		}
	}
}

// knownClaims are those of a Pod's claims that the cache has.
func (p *Preparer) knownClaims(pod *corev1.Pod) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, key := range claimsOf(pod) {
		if claim, err := p.claim(key); err == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// release notes that no claim is prepared any more for the Pod, nor for those
// that had its name before.
func (p *Preparer) release(state *podState) {
	for ; state != nil; state = state.former {
		for _, claim := range state.claims {
			if !p.states.unuse(claim, state.uid) {
				continue
			}
			p.changes.Add(1)
			if !state.followed {
				p.metrics.unprepares.Inc()
			}
		}
		state.claims = nil
	}
}

// consumers are the Pods on fake nodes that a claim is reserved for and that have
// not ended.
func (p *Preparer) consumers(claim *resourcev1.ResourceClaim) []*corev1.Pod {
	return slices.DeleteFunc(p.allConsumers(claim), func(pod *corev1.Pod) bool { return !p.nodes.Has(pod.Spec.NodeName) })
}

// allConsumers are those on any node.
func (p *Preparer) allConsumers(claim *resourcev1.ResourceClaim) []*corev1.Pod {
	return slices.DeleteFunc(p.podsBy(byClaim, keyOf(claim).String()), func(pod *corev1.Pod) bool {
		return terminal(pod) || !resourceclaim.IsReservedForPod(pod, claim, true)
	})
}

// others reports whether another kwok-dra may act for a claim that no consumer on a
// node of this one uses.
func (p *Preparer) others(state *claimState, claim *resourcev1.ResourceClaim) bool {
	if node := nodeOf(claim); node != "" {
		return node != state.node && p.nodes.Others(node)
	}
	return slices.ContainsFunc(p.allConsumers(claim), func(pod *corev1.Pod) bool { return p.nodes.Others(pod.Spec.NodeName) })
}

// users are the consumers that a claim is prepared for, and the one that it is
// being prepared for, if any. The oldest is first.
func (p *Preparer) users(claim *resourcev1.ResourceClaim, joining types.UID) []*corev1.Pod {
	var prepared []*corev1.Pod
	for _, pod := range p.consumers(claim) {
		if pod.UID == joining || readyToStart(pod) == corev1.ConditionTrue || p.states.uses(claim.UID, pod.UID) {
			prepared = append(prepared, pod)
		}
	}
	slices.SortFunc(prepared, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return prepared
}

// reconcileClaim brings the entries of a claim to the Pods that use it.
func (p *Preparer) reconcileClaim(ctx context.Context, key types.NamespacedName) error {
	claim, err := p.claim(key)
	set := p.config.Current()
	if apierrors.IsNotFound(err) || err == nil && set == nil {
		return nil
	}
	if err != nil {
		return err
	}
	state := p.states.claim(claim.UID)
	state.Lock()
	defer state.Unlock()
	node := nodeOf(claim)
	there := p.nodes.Has(node)
	if there {
		state.node = node
	}
	if !p.owner.Acts(node, there) {
		return nil
	}
	claim = p.latest(state, claim)
	return errors.Join(p.bind(ctx, set, state, claim), p.settle(ctx, set, state, claim))
}

// settle withdraws from a claim that no Pod uses, and keeps the Pods up to date
// in entries that name them.
func (p *Preparer) settle(ctx context.Context, set *config.Set, state *claimState, claim *resourcev1.ResourceClaim) error {
	prepared, binding := managedBy(claim, fieldManager), managedBy(claim, bindingManager)
	if !prepared && !binding {
		state.unused = time.Time{}
		return nil
	}
	if len(p.consumers(claim)) > 0 {
		state.unused = time.Time{}
		return p.rename(ctx, set, state, claim)
	}
	if p.others(state, claim) {
		state.unused = time.Time{}
		return nil
	}
	if state.unused.IsZero() {
		state.unused = time.Now()
	}
	if left := withdrawDelay - time.Since(state.unused); left > 0 {
		p.claimLoop.AddAfter(keyOf(claim), left)
		return nil
	}
	if prepared {
		used, err := p.usedLive(ctx, claim)
		if err != nil {
			return err
		}
		if used {
			p.claimLoop.AddAfter(keyOf(claim), withdrawDelay) // the cache of Pods lags
			return nil
		}
		return p.withdraw(ctx, state, fieldManager, claim) // its event brings us back for the binding conditions
	}
	pods, err := p.unboundConsumers(ctx, claim)
	if err != nil {
		return err
	}
	if beingBound(claim, pods) {
		p.claimLoop.AddAfter(keyOf(claim), bindingPatience) // the cache has no Pod whose end would bring us back
		return nil
	}
	return p.withdraw(ctx, state, bindingManager, claim)
}

// usedLive asks whether a Pod uses the claim that the cache does not have yet:
// another kwok-dra may have prepared it, and a Pod that runs gets its entries only
// once.
func (p *Preparer) usedLive(ctx context.Context, claim *resourcev1.ResourceClaim) (bool, error) {
	for _, consumer := range claim.Status.ReservedFor {
		known := p.observed(types.NamespacedName{Namespace: claim.Namespace, Name: consumer.Name})
		if !isPod(consumer) || known != nil && known.UID == consumer.UID {
			continue
		}
		pod, err := p.client.CoreV1().Pods(claim.Namespace).Get(ctx, consumer.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("get pod %s/%s: %w", claim.Namespace, consumer.Name, err)
		}
		others := nodeOf(claim) == "" && pod.Spec.NodeName != "" && p.nodes.Others(pod.Spec.NodeName)
		if pod.UID == consumer.UID && !terminal(pod) && (p.nodes.Has(pod.Spec.NodeName) || others) {
			return true, nil
		}
	}
	return false, nil
}

// rename writes a claim whose entries name other Pods than it is prepared for. What
// they say of a node is of the oldest Pod's, so that it stays as long as that does.
func (p *Preparer) rename(ctx context.Context, set *config.Set, state *claimState, claim *resourcev1.ResourceClaim) error {
	if claim.Status.Allocation == nil || !managedBy(claim, fieldManager) || !namesPods(set) {
		return nil
	}
	pods := p.users(claim, "")
	if len(pods) == 0 {
		return nil
	}
	node := p.nodes.Get(pods[0].Spec.NodeName)
	if node == nil {
		return nil
	}
	want, err := desire(claim, source{lookup: devices.NewLookup(set.Templates, node), named: set.Names, pods: objectsOf(pods)})
	if err != nil || !want.namesPods {
		return nil //nolint:nilerr // where templates have changed since, what was reported stays
	}
	return p.writeLocked(ctx, state, want)
}

// namesPods reports whether any template has claims name their Pods.
func namesPods(set *config.Set) bool {
	return slices.ContainsFunc(set.Templates, func(t *devices.Template) bool { return t.ClaimStatus.UsesPods })
}
