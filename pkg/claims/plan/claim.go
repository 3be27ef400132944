package plan

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// WithdrawDelay is how long a claim that no Pod uses keeps its entries. As a
// rule the claim controller deallocates it by then, and the API server drops the
// entries of devices that are not allocated.
const WithdrawDelay = 5 * time.Second

// OthersDelay is how long a claim on a node that may be another kwok-dra's keeps its entries: that
// one withdraws them before. Where there is none, the node was one's own, and has left
// the selection before the claim was seen.
const OthersDelay = 2 * WithdrawDelay

// bindingPatience is how often it is looked whether a Pod is still being bound.
const bindingPatience = 20 * time.Second

// ClaimView is what is known of a claim and of the Pods that use it.
type ClaimView struct {
	Claim *resourcev1.ResourceClaim
	Set   *config.Set
	Nodes Nodes
	// Consumers are the Pods in the cache that the claim is reserved for and that have not ended.
	Consumers []*corev1.Pod
	// Users are those of them on fake nodes that the claim is prepared for, the oldest first.
	Users []*corev1.Pod
	// Driver answers for the node of the first of them. It is nil where no entries name
	// their Pods.
	Driver Driver
	// Unknown are the Pods that the claim is reserved for and that the cache does not
	// have. It is nil in a view that rests on the caches.
	Unknown []*corev1.Pod
	Memory  ClaimMemory
}

// Nodes tells who acts for a node.
type Nodes interface {
	// Has reports whether the node is a fake one.
	Has(name string) bool
	// Others reports whether another kwok-dra may act for it.
	Others(name string) bool
}

// ClaimMemory is what is remembered of a claim. All of it can be lost.
type ClaimMemory struct {
	// Node is the fake node that the claim was last seen allocated on. Where only some
	// nodes are listed, it tells a node that has gone from someone else's.
	Node string
	// Unused is since when no Pod uses the claim.
	Unused time.Time
	// allocated is when the claim was allocated by the scheduler's clock, and seen when
	// that was first seen by one's own.
	allocated metav1.Time
	seen      time.Time
}

// ClaimPlan is what a claim needs now.
type ClaimPlan struct {
	// Confirm says that this rests on caches that may lag: plan again with a live view.
	Confirm bool
	Write   *ClaimWrite
	// Wait is how long there is nothing to do, or 0 until something changes.
	Wait   time.Duration
	Memory ClaimMemory
}

// ClaimWrite makes entries the only ones of a field manager in a claim.
type ClaimWrite struct {
	// Operation is one of the Write constants.
	Operation string
	Manager   string
	Entries   []resourcev1.AllocatedDeviceStatus
	// AnyVersion says that the claim is written also where it has changed meanwhile.
	AnyVersion bool
}

// The operations of writes, as kwok_dra_claim_writes_total has them.
const (
	WritePrepare  = "prepare"
	WriteWithdraw = "withdraw"
	WriteBind     = "bind"
)

// ForClaim works out what the entries of a claim need now: first its binding conditions,
// then those of its users.
func ForClaim(ctx context.Context, v *ClaimView, now time.Time) (ClaimPlan, error) {
	bind, err := v.planBinding(ctx, now)
	if bind.Confirm || bind.Write != nil {
		return bind, err
	}
	v.Memory = bind.Memory
	plan := v.planEntries(now)
	if plan.Wait == 0 || bind.Wait > 0 && bind.Wait < plan.Wait {
		plan.Wait = bind.Wait
	}
	return plan, err
}

// planEntries withdraws from a claim that no Pod uses, and keeps the Pods up to date in
// entries that name them.
func (v *ClaimView) planEntries(now time.Time) ClaimPlan {
	plan := ClaimPlan{Memory: v.Memory}
	prepared, bound := facts.ManagedBy(v.Claim, facts.Manager), facts.ManagedBy(v.Claim, facts.BindingManager)
	used := v.hasConsumers()
	if used || !prepared && !bound || v.hasForeignConsumers() {
		plan.Memory.Unused = time.Time{}
		if used {
			plan.Write = v.planRename()
		}
		if slices.ContainsFunc(v.Consumers, func(pod *corev1.Pod) bool { return !facts.NamesClaim(pod, v.Claim) }) {
			plan.Wait = bindingPatience // the end of such a Pod does not bring us back
		}
		return plan
	}
	if v.Memory.Unused.IsZero() {
		plan.Memory.Unused = now
	}
	delay := WithdrawDelay
	if v.isOnForeignNode() {
		delay = OthersDelay
	}
	plan.Wait = max(0, delay-now.Sub(plan.Memory.Unused))
	switch {
	case plan.Wait > 0:
	case v.Unknown == nil:
		plan.Confirm = true
	case prepared && slices.ContainsFunc(v.Unknown, v.mayBeUsedBy):
		plan.Wait = WithdrawDelay // the cache of Pods lags
	case prepared:
		plan.Write = &ClaimWrite{Operation: WriteWithdraw, Manager: facts.Manager} // its event brings us back for the binding conditions
	case v.isBeingBound():
		plan.Wait = bindingPatience // the cache has no Pod whose end would bring us back
	default:
		plan.Write = &ClaimWrite{Operation: WriteWithdraw, Manager: facts.BindingManager}
	}
	return plan
}

// hasConsumers reports whether the claim has consumers on fake nodes.
func (v *ClaimView) hasConsumers() bool {
	return slices.ContainsFunc(v.Consumers, func(pod *corev1.Pod) bool { return v.Nodes.Has(pod.Spec.NodeName) })
}

// isOnForeignNode reports whether the claim is on a node for which another kwok-dra may act.
func (v *ClaimView) isOnForeignNode() bool {
	node := facts.NodeOf(v.Claim)
	return node != "" && node != v.Memory.Node && v.Nodes.Others(node)
}

// hasForeignConsumers reports whether a consumer is on a node for which another kwok-dra may act.
func (v *ClaimView) hasForeignConsumers() bool {
	return slices.ContainsFunc(v.Consumers, func(pod *corev1.Pod) bool { return v.isForeignNode(pod.Spec.NodeName) })
}

// isForeignNode reports whether another kwok-dra may act for the claim's Pods on a node.
func (v *ClaimView) isForeignNode(node string) bool {
	return node != "" && v.Nodes.Others(node) && (facts.NodeOf(v.Claim) == "" || v.isOnForeignNode())
}

// mayBeUsedBy reports whether a Pod that the cache does not have yet uses the claim: another
// kwok-dra may have prepared it, and a Pod that runs gets its entries only once.
func (v *ClaimView) mayBeUsedBy(pod *corev1.Pod) bool {
	return !facts.IsTerminal(pod) && (v.Nodes.Has(pod.Spec.NodeName) || v.isForeignNode(pod.Spec.NodeName))
}

// planRename writes a claim whose entries name other Pods than it is prepared for. What
// they say of a node is of the oldest Pod's, so that it stays as long as that does.
func (v *ClaimView) planRename() *ClaimWrite {
	if v.Driver == nil || v.Claim.Status.Allocation == nil || !facts.ManagedBy(v.Claim, facts.Manager) {
		return nil
	}
	want, err := v.Driver.Entries(v.Claim, v.Users)
	if err != nil || !want.NamePods || want.Shown() { // where templates have changed since, what was reported stays
		return nil
	}
	return &ClaimWrite{Operation: WritePrepare, Manager: facts.Manager, Entries: want.Devices}
}
