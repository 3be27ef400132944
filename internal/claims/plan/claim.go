package plan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// WithdrawDelay is how long a claim without consumers keeps its entries. The claim controller usually
// deallocates the claim before, and the API server drops entries of devices that are not allocated.
const WithdrawDelay = 5 * time.Second

// OthersDelay is WithdrawDelay for a claim on a node that may belong to another kwok-dra, which withdraws
// the entries first. If there is no other one, the node was deselected here before the claim was seen.
const OthersDelay = 2 * WithdrawDelay

// renewInterval is the least time between two writes of entries because they name other Pods. Two installations that disagree
// for a while, since one sees the end of a Pod later, do not write a claim in turn as fast as they can.
const renewInterval = time.Second

// bindingPollInterval is how often a claim is rechecked whose consumers' end brings no event.
const bindingPollInterval = 20 * time.Second

// ClaimView is what is known of a claim and of the Pods that use it.
type ClaimView struct {
	Claim *resourcev1.ResourceClaim
	Set   *config.Set
	Nodes Nodes
	// Consumers are the cached Pods that the claim is reserved for and that have not ended.
	Consumers []*corev1.Pod
	// Users are the consumers that the claim is prepared for, and those on nodes of another installation, the oldest first.
	Users []*corev1.Pod
	// Driver answers for the node of the first user. It is nil if no entries name their Pods, or if the node is another
	// installation's.
	Driver Driver
	// Uncached are the Pods that the claim is reserved for and that the cache lacks. It is nil in a view
	// that rests on the caches.
	Uncached []*corev1.Pod
	Memory   ClaimMemory
}

// Nodes says who acts for a node.
type Nodes interface {
	// Has reports whether the node is a fake one.
	Has(name string) bool
	// MayBeForeign reports whether another kwok-dra may act for the node.
	MayBeForeign(name string) bool
}

// ClaimMemory is what is remembered of a claim. All of it can be lost.
type ClaimMemory struct {
	// Node is the fake node that the claim was last seen allocated on. With a narrow selection of nodes,
	// it distinguishes a deleted node from one that belongs to another kwok-dra.
	Node string
	// UnusedSince is when the claim lost its last consumer.
	UnusedSince time.Time
	// Renewed is when the entries of the claim were last written because they named other Pods.
	Renewed time.Time
	// allocated is the time of the allocation by the scheduler's clock, and seen the time at which the
	// allocation was first seen.
	allocated metav1.Time
	seen      time.Time
}

// ClaimPlan is what a claim needs now.
type ClaimPlan struct {
	// NeedsUncached says that the plan rests on caches that may lag, and has to be made again with the Pods that they lack.
	NeedsUncached bool
	Write         *ClaimWrite
	// Failure is why a Pod cannot be bound, which waits for binding conditions of the claim.
	Failure *BindingFailure
	// Wait is the time until the next look at the claim, or 0 if only a change makes one necessary.
	Wait   time.Duration
	Memory ClaimMemory
}

// BindingFailure says why it is not known which binding conditions a Pod should get.
type BindingFailure struct {
	*Failure
	Pod *corev1.Pod
}

// ClaimWrite replaces the entries of a field manager in a claim.
type ClaimWrite struct {
	// Operation is one of the Write constants.
	Operation string
	Manager   string
	Entries   []resourcev1.AllocatedDeviceStatus
	// AnyVersion says to write the claim even if it has changed since.
	AnyVersion bool
	// NamePods says that the entries name Pods: those of another Pod of the claim may differ, so ForClaim has the last word.
	NamePods bool
}

// The operations of writes, as kwok_dra_claim_writes_total has them.
const (
	WritePrepare  = "prepare"
	WriteWithdraw = "withdraw"
	WriteBind     = "bind"
)

// ForClaim works out what the entries of a claim need now: binding conditions first, then the entries for
// its users.
func ForClaim(ctx context.Context, v *ClaimView, now time.Time) ClaimPlan {
	bind := v.planBinding(ctx, now)
	if bind.NeedsUncached || bind.Write != nil {
		return bind
	}
	v.Memory = bind.Memory
	plan := v.planWithdrawal(now)
	plan.Failure = bind.Failure
	v.planRenewal(&plan, now)
	if plan.Wait == 0 || bind.Wait > 0 && bind.Wait < plan.Wait {
		plan.Wait = bind.Wait
	}
	return plan
}

// planRenewal renews entries that name other Pods than those that the claim is prepared for. They describe the node of the oldest
// Pod, so they stay the same for as long as that Pod does, and one installation writes them. Where templates have changed since,
// what was reported stays.
func (v *ClaimView) planRenewal(plan *ClaimPlan, now time.Time) {
	if !v.hasConsumers() || v.Driver == nil || v.Claim.Status.Allocation == nil || !facts.ManagedBy(v.Claim, facts.Manager) {
		return
	}
	want, failed := v.Driver.Entries(v.Claim, v.Users)
	switch wait := renewInterval - now.Sub(v.Memory.Renewed); {
	case failed != nil || !want.NamePods || want.Shown():
	case wait > 0:
		plan.Wait = wait
	default:
		plan.Write = &ClaimWrite{Operation: WritePrepare, Manager: facts.Manager, Entries: want.Devices}
	}
}

// planWithdrawal withdraws the entries of a claim without consumers.
func (v *ClaimView) planWithdrawal(now time.Time) ClaimPlan {
	plan := ClaimPlan{Memory: v.Memory}
	hasEntries, hasConditions := facts.ManagedBy(v.Claim, facts.Manager), facts.ManagedBy(v.Claim, facts.BindingManager)
	node := facts.NodeOf(v.Claim)
	isOnForeignNode := node != "" && node != v.Memory.Node && v.Nodes.MayBeForeign(node)
	isForeign := func(pod *corev1.Pod) bool { // another kwok-dra may act for the Pod
		return pod.Spec.NodeName != "" && v.Nodes.MayBeForeign(pod.Spec.NodeName) && (node == "" || isOnForeignNode)
	}
	if v.hasConsumers() || !hasEntries && !hasConditions || slices.ContainsFunc(v.Consumers, isForeign) {
		plan.Memory.UnusedSince = time.Time{}
		if slices.ContainsFunc(v.Consumers, func(pod *corev1.Pod) bool { return !facts.NamesClaim(pod, v.Claim) }) {
			plan.Wait = bindingPollInterval // the end of a Pod that does not name the claim brings no event
		}
		return plan
	}
	if v.Memory.UnusedSince.IsZero() {
		plan.Memory.UnusedSince = now
	}
	delay := WithdrawDelay
	if isOnForeignNode {
		delay = OthersDelay
	}
	plan.Wait = max(0, delay-now.Sub(plan.Memory.UnusedSince))
	// Another kwok-dra may have prepared the claim for a Pod that the cache lacks, and a running Pod gets its entries only once.
	mayUse := func(pod *corev1.Pod) bool {
		return !facts.IsTerminal(pod) && (v.Nodes.Has(pod.Spec.NodeName) || isForeign(pod))
	}
	_, isBeingBound := v.unboundPods()
	switch {
	case plan.Wait > 0:
	case v.Uncached == nil:
		plan.NeedsUncached = true
	case hasEntries && slices.ContainsFunc(v.Uncached, mayUse):
		plan.Wait = WithdrawDelay // the cache of Pods lags
	case hasEntries:
		plan.Write = &ClaimWrite{Operation: WriteWithdraw, Manager: facts.Manager} // its event requeues the claim for the binding conditions
	case isBeingBound:
		plan.Wait = bindingPollInterval // an unbound Pod is not cached, so its end brings no event
	default:
		plan.Write = &ClaimWrite{Operation: WriteWithdraw, Manager: facts.BindingManager}
	}
	return plan
}

// hasConsumers reports whether the claim has consumers on fake nodes.
func (v *ClaimView) hasConsumers() bool {
	return slices.ContainsFunc(v.Consumers, func(pod *corev1.Pod) bool { return v.Nodes.Has(pod.Spec.NodeName) })
}

// Replace changes a claim as a server-side apply of the write would. The claim must have all its managed
// fields, and the entries to write their times.
func (w *ClaimWrite) Replace(claim *resourcev1.ResourceClaim) {
	owned, isBinding := w.ownedEntries(claim), w.Manager == facts.BindingManager
	wanted := func(id facts.DeviceID) bool {
		return slices.ContainsFunc(w.Entries, func(e resourcev1.AllocatedDeviceStatus) bool { return facts.EntryID(&e) == id })
	}
	for _, id := range owned {
		entry := facts.EntryOf(claim, id)
		if entry == nil {
			continue
		}
		isBindingCondition := func(kind string) bool {
			return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
				return facts.ResultID(&result) == id && (slices.Contains(result.BindingConditions, kind) || slices.Contains(result.BindingFailureConditions, kind))
			})
		}
		// Binding conditions belong to one manager, everything else to the other.
		entry.Conditions = slices.DeleteFunc(entry.Conditions, func(c metav1.Condition) bool { return isBindingCondition(c.Type) == isBinding })
		if !isBinding {
			entry.Data, entry.NetworkData = nil, nil
		}
	}
	claim.Status.Devices = slices.DeleteFunc(claim.Status.Devices, func(entry resourcev1.AllocatedDeviceStatus) bool {
		id := facts.EntryID(&entry)
		return slices.Contains(owned, id) && !wanted(id) && len(entry.Conditions) == 0 && entry.Data == nil && entry.NetworkData == nil
	})
	for i := range w.Entries {
		want := &w.Entries[i]
		entry := facts.EntryOf(claim, facts.EntryID(want))
		if entry == nil {
			claim.Status.Devices = append(claim.Status.Devices, *want.DeepCopy())
			continue
		}
		for _, condition := range want.Conditions {
			entry.Conditions = slices.DeleteFunc(entry.Conditions, func(c metav1.Condition) bool { return c.Type == condition.Type })
			entry.Conditions = append(entry.Conditions, condition)
		}
		if want.Data != nil {
			entry.Data = want.Data.DeepCopy()
		}
		if want.NetworkData != nil {
			entry.NetworkData = want.NetworkData.DeepCopy()
		}
	}
}

// ownedEntries lists the entries that the manager has written.
func (w *ClaimWrite) ownedEntries(claim *resourcev1.ResourceClaim) []facts.DeviceID {
	var ids []facts.DeviceID
	for _, managed := range claim.ManagedFields {
		if managed.Manager != w.Manager || managed.Subresource != "status" || managed.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Devices map[string]any `json:"f:devices"`
			} `json:"f:status"`
		}
		if json.Unmarshal(managed.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Status.Devices {
			entry := resourcev1.AllocatedDeviceStatus{}
			if key, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(key), &entry) == nil {
				ids = append(ids, facts.EntryID(&entry))
			}
		}
	}
	return ids
}
