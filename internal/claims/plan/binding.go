package plan

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// planBinding sets the binding conditions of the devices of a Pod that is being bound (KEP-5007). The scheduler binds the
// Pod once all conditions are True, and gives the devices back once a failure condition is True.
func (v *ClaimView) planBinding(ctx context.Context, now time.Time) ClaimPlan {
	plan := ClaimPlan{Memory: v.Memory}
	if !facts.HasBindingConditions(v.Claim) {
		return plan
	}
	results, isPending := v.ownBindingResults()
	if !isPending {
		return plan
	}
	// The scheduler records the time of each allocation with binding conditions; one without a time counts as old. If the
	// scheduler's clock is ahead, the time counts from when the allocation was first seen.
	if at, m := v.Claim.Status.Allocation.AllocationTimestamp, &plan.Memory; at != nil {
		if !at.Equal(&m.allocated) {
			m.allocated, m.seen = *at, now
		}
		if plan.Wait = max(0, v.Set.BindingDelay-max(now.Sub(at.Time), now.Sub(m.seen))); plan.Wait > 0 {
			return plan
		}
	}
	if v.Uncached == nil {
		plan.NeedsUncached = true
		return plan
	}
	unbound, isBeingBound := v.unboundPods()
	if !isBeingBound && !v.hasConsumers() {
		return plan // without a Pod that waits, the conditions would be withdrawn again
	}
	failure := ""
	for _, pod := range unbound {
		fails, err := v.Set.FailWhen.Matches(ctx, lifecycle.NewObject(pod))
		if err != nil {
			plan.Failure, plan.Wait = &BindingFailure{&Failure{ReasonSelector, err}, pod}, bindingPollInterval
			return plan
		}
		if fails {
			failure = simulatedFailureText(pod)
			break
		}
	}
	plan.Write = &ClaimWrite{Operation: WriteBind, Manager: facts.BindingManager}
	for _, result := range results {
		plan.Write.Entries = append(plan.Write.Entries, bindingEntry(&result, failure))
	}
	return plan
}

// ownBindingResults lists the devices with binding conditions that kwok-dra sets: on a fake node those of drivers with
// templates, and before a node is chosen those in pools that nodes share. It reports whether the scheduler waits for any.
func (v *ClaimView) ownBindingResults() (own []resourcev1.DeviceRequestAllocationResult, isPending bool) {
	node := facts.NodeOf(v.Claim)
	isFake := v.Nodes.Has(node)
	for _, result := range v.Claim.Status.Allocation.Devices.Results {
		isOwn := isFake && v.Set.HasDriver(result.Driver) || node == "" && v.Set.SharedPool(result.Driver, result.Pool) != nil
		if !isOwn || len(result.BindingConditions) == 0 {
			continue
		}
		own = append(own, result)
		entry := facts.EntryOf(v.Claim, facts.ResultID(&result))
		isTrue := func(kind string) bool { return entry != nil && meta.IsStatusConditionTrue(entry.Conditions, kind) }
		isMissing := slices.ContainsFunc(result.BindingConditions, func(kind string) bool { return !isTrue(kind) })
		isPending = isPending || isMissing && !slices.ContainsFunc(result.BindingFailureConditions, isTrue)
	}
	return own, isPending
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

// unboundPods lists the Pods that the claim is reserved for and that are not bound. The cache has only bound Pods. It reports
// whether the scheduler may be binding a Pod that uses the claim: one of these, or a Pod of a PodGroup.
func (v *ClaimView) unboundPods() (unbound []*corev1.Pod, isBeingBound bool) {
	unbound = slices.DeleteFunc(slices.Clone(v.Uncached), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" || facts.IsTerminal(pod) })
	isGroup := func(c resourcev1.ResourceClaimConsumerReference) bool { return !facts.IsPod(c) }
	return unbound, len(unbound) > 0 || slices.ContainsFunc(v.Claim.Status.ReservedFor, isGroup)
}
