package plan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// planBinding sets the binding conditions of the devices of a Pod that is being bound (KEP-5007). The
// scheduler binds the Pod once all conditions are True, and gives the devices back once a failure
// condition is True.
func (v *ClaimView) planBinding(ctx context.Context, now time.Time) (ClaimPlan, error) {
	plan := ClaimPlan{Memory: v.Memory}
	if !facts.HasBindingConditions(v.Claim) || !slices.ContainsFunc(v.ownBindingResults(), v.isPending) {
		return plan, nil
	}
	if delay := v.Set.BindingDelay - plan.Memory.sinceAllocation(v.Claim, now); delay > 0 {
		plan.Wait = delay
		return plan, nil
	}
	if v.Uncached == nil {
		plan.NeedsUncached = true
		return plan, nil
	}
	if !v.isBeingBound() && !v.hasConsumers() {
		return plan, nil // without a Pod that waits, the conditions would be withdrawn again
	}
	failure := ""
	for _, pod := range v.unboundPods() {
		fails, err := v.Set.FailWhen.Matches(ctx, lifecycle.PodObject(pod))
		if err != nil {
			return plan, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if fails {
			failure = simulatedFailureText(pod)
			break
		}
	}
	plan.Write = &ClaimWrite{Operation: WriteBind, Manager: facts.BindingManager}
	for _, result := range v.ownBindingResults() {
		plan.Write.Entries = append(plan.Write.Entries, bindingEntry(&result, failure))
	}
	return plan, nil
}

// sinceAllocation returns how long ago a claim was allocated. The scheduler records the time of each
// allocation with binding conditions; an allocation without a time counts as old. If the scheduler's
// clock is ahead, the time counts from when the allocation was first seen.
func (m *ClaimMemory) sinceAllocation(claim *resourcev1.ResourceClaim, now time.Time) time.Duration {
	at := claim.Status.Allocation.AllocationTimestamp
	if at == nil {
		return math.MaxInt64
	}
	if !at.Equal(&m.allocated) {
		m.allocated, m.seen = *at, now
	}
	return max(now.Sub(at.Time), now.Sub(m.seen))
}

// ownBindingResults lists the devices with binding conditions that kwok-dra sets: on a fake node those of
// drivers with templates, and before a node is chosen those in pools that nodes share.
func (v *ClaimView) ownBindingResults() []resourcev1.DeviceRequestAllocationResult {
	node := facts.NodeOf(v.Claim)
	fake := v.Nodes.Has(node)
	return slices.DeleteFunc(slices.Clone(v.Claim.Status.Allocation.Devices.Results), func(result resourcev1.DeviceRequestAllocationResult) bool {
		ours := fake && v.Set.HasDriver(result.Driver) || node == "" && v.Set.SharedPool(result.Driver, result.Pool) != nil
		return !ours || len(result.BindingConditions) == 0
	})
}

// isPending reports whether the scheduler still waits for the conditions of a device.
func (v *ClaimView) isPending(result resourcev1.DeviceRequestAllocationResult) bool {
	entry := facts.EntryOf(v.Claim, facts.ResultID(&result))
	if entry == nil {
		return true
	}
	isTrue := func(kind string) bool { return meta.IsStatusConditionTrue(entry.Conditions, kind) }
	missing := slices.ContainsFunc(result.BindingConditions, func(kind string) bool { return !isTrue(kind) })
	return missing && !slices.ContainsFunc(result.BindingFailureConditions, isTrue)
}

// bindingEntry sets all binding conditions of a device, or with a failure its first failure condition.
func bindingEntry(result *resourcev1.DeviceRequestAllocationResult, failure string) resourcev1.AllocatedDeviceStatus {
	entry := facts.EntryFor(result)
	kinds, reason, message := result.BindingConditions, "Bound", "device is ready to be bound"
	if failure != "" && len(result.BindingFailureConditions) > 0 {
		kinds, reason, message = result.BindingFailureConditions[:1], "BindingFailed", failure
	}
	for _, kind := range kinds {
		entry.Conditions = append(entry.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		})
	}
	return entry
}

// isBeingBound reports whether the scheduler may be binding a Pod that uses the claim: an unbound
// consumer, or a Pod of a PodGroup.
func (v *ClaimView) isBeingBound() bool {
	return len(v.unboundPods()) > 0 || slices.ContainsFunc(v.Claim.Status.ReservedFor, func(c resourcev1.ResourceClaimConsumerReference) bool { return !facts.IsPod(c) })
}

// unboundPods lists the Pods that the claim is reserved for and that are not bound. The cache has only
// bound Pods.
func (v *ClaimView) unboundPods() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(v.Uncached), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" || facts.IsTerminal(pod) })
}
