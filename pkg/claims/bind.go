package claims

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// The reasons of binding conditions.
const (
	reasonBound         = "Bound"
	reasonBindingFailed = "BindingFailed"
)

func hasBindingConditions(claim *resourcev1.ResourceClaim) bool {
	return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
		func(result resourcev1.DeviceRequestAllocationResult) bool { return len(result.BindingConditions) > 0 })
}

// bind sets the binding conditions of devices that a Pod is being bound for
// (KEP-5007): the scheduler binds the Pod once all of them are True, or gives the
// devices back when a failure condition is.
func (p *Preparer) bind(ctx context.Context, set *config.Set, state *claimState, claim *resourcev1.ResourceClaim) error {
	ours := p.bindable(set, claim)
	if !hasBindingConditions(claim) || len(pendingBindings(claim, ours)) == 0 {
		return nil
	}
	if left := set.BindingDelay - state.sinceAllocation(claim); left > 0 {
		p.claimLoop.AddAfter(keyOf(claim), left)
		return nil
	}
	pods, err := p.unboundConsumers(ctx, claim)
	if err != nil {
		return err
	}
	if !beingBound(claim, pods) && len(p.consumers(claim)) == 0 {
		return nil // no Pod waits for them, and they would be withdrawn again
	}
	failure, err := bindingFailure(ctx, set, pods)
	if err != nil {
		return err
	}
	var entries []resourcev1.AllocatedDeviceStatus
	for _, result := range bindings(claim, ours) {
		entries = append(entries, bindingEntry(&result, failure))
	}
	err = p.applyEntries(ctx, state, bindingManager, claim, entries)
	p.metrics.wroteClaim("bind", err)
	if err != nil {
		return fmt.Errorf("set binding conditions of ResourceClaim %s: %w", keyOf(claim), err)
	}
	return nil
}

// sinceAllocation is how long ago a claim was allocated. The scheduler notes the
// time wherever there are binding conditions; without it, long ago. Where the
// scheduler's clock is ahead, it counts since when the allocation was first seen.
func (s *claimState) sinceAllocation(claim *resourcev1.ResourceClaim) time.Duration {
	at := claim.Status.Allocation.AllocationTimestamp
	if at == nil {
		return math.MaxInt64
	}
	if !at.Equal(&s.allocated.at) {
		s.allocated.at, s.allocated.seen = *at, time.Now()
	}
	return max(time.Since(at.Time), time.Since(s.allocated.seen))
}

// bindable tells which devices are ours to bind: on a fake node those of drivers
// with templates, and, as long as the scheduler may choose any of several nodes,
// those of pools that nodes share.
func (p *Preparer) bindable(set *config.Set, claim *resourcev1.ResourceClaim) func(*resourcev1.DeviceRequestAllocationResult) bool {
	node := nodeOf(claim)
	there := p.nodes.Has(node)
	return func(result *resourcev1.DeviceRequestAllocationResult) bool {
		return there && set.Names(result.Driver) || node == "" && set.SharedPool(result.Driver, result.Pool) != nil
	}
}

// bindings are the results with binding conditions that are ours to set.
func bindings(claim *resourcev1.ResourceClaim, ours func(*resourcev1.DeviceRequestAllocationResult) bool) []resourcev1.DeviceRequestAllocationResult {
	return slices.DeleteFunc(slices.Clone(claim.Status.Allocation.Devices.Results), func(result resourcev1.DeviceRequestAllocationResult) bool {
		return len(result.BindingConditions) == 0 || !ours(&result)
	})
}

// pendingBindings are those that the scheduler still waits for.
func pendingBindings(claim *resourcev1.ResourceClaim, ours func(*resourcev1.DeviceRequestAllocationResult) bool) []resourcev1.DeviceRequestAllocationResult {
	return slices.DeleteFunc(bindings(claim, ours), func(result resourcev1.DeviceRequestAllocationResult) bool {
		entry := entryOf(claim, resultID(&result))
		if entry == nil {
			return false
		}
		isTrue := func(kind string) bool {
			return slices.ContainsFunc(entry.Conditions, func(c metav1.Condition) bool {
				return c.Type == kind && c.Status == metav1.ConditionTrue
			})
		}
		missing := slices.ContainsFunc(result.BindingConditions, func(kind string) bool { return !isTrue(kind) })
		return !missing || slices.ContainsFunc(result.BindingFailureConditions, isTrue)
	})
}

// bindingEntry sets all conditions, or with a failure the first of those that
// report one.
func bindingEntry(result *resourcev1.DeviceRequestAllocationResult, failure string) resourcev1.AllocatedDeviceStatus {
	entry := entryFor(result)
	kinds, reason, message := result.BindingConditions, reasonBound, "device is ready to be bound"
	if failure != "" && len(result.BindingFailureConditions) > 0 {
		kinds, reason, message = result.BindingFailureConditions[:1], reasonBindingFailed, failure
	}
	for _, kind := range kinds {
		entry.Conditions = append(entry.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		})
	}
	return entry
}

// bindingFailure asks failWhen about the Pods that are being bound.
func bindingFailure(ctx context.Context, set *config.Set, pods []*corev1.Pod) (string, error) {
	for _, pod := range pods {
		fail, err := set.FailWhen.Matches(ctx, lifecycle.PodObject(pod))
		if err != nil {
			return "", fmt.Errorf("pod %s: %w", keyOf(pod), err)
		}
		if fail {
			return failureOf(pod), nil
		}
	}
	return "", nil
}

// beingBound reports whether the scheduler may be about to bind a Pod that uses the
// claim: one of its consumers that are not bound, or one of a PodGroup.
func beingBound(claim *resourcev1.ResourceClaim, unbound []*corev1.Pod) bool {
	return len(unbound) > 0 || slices.ContainsFunc(claim.Status.ReservedFor, func(c resourcev1.ResourceClaimConsumerReference) bool { return !isPod(c) })
}

func isPod(consumer resourcev1.ResourceClaimConsumerReference) bool {
	return consumer.APIGroup == "" && consumer.Resource == "pods"
}

// unboundConsumers are the Pods that the claim is reserved for and that are not
// bound. The cache does not have them.
func (p *Preparer) unboundConsumers(ctx context.Context, claim *resourcev1.ResourceClaim) ([]*corev1.Pod, error) {
	var unbound []*corev1.Pod
	for _, consumer := range claim.Status.ReservedFor {
		if !isPod(consumer) {
			continue
		}
		pod, err := p.client.CoreV1().Pods(claim.Namespace).Get(ctx, consumer.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get pod %s/%s: %w", claim.Namespace, consumer.Name, err)
		}
		if pod.UID == consumer.UID && pod.Spec.NodeName == "" && !terminal(pod) {
			pod.ManagedFields = nil
			unbound = append(unbound, pod)
		}
	}
	return unbound, nil
}
