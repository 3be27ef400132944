package drajudge

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observePod judges a change of a Pod. Only a Pod that was seen without a node was bound by a scheduler.
func (o *Observer) observePod(pod *corev1.Pod, isDeleted bool, at time.Time) []Violation {
	id := keyOf(pod, "Pod")
	old := o.pods[id]
	if isDeleted {
		delete(o.pods, id)
		return nil
	}
	o.pods[id] = pod
	o.preemptions.observePod(pod, old, o.pods)
	if old == nil || !isSame(old, pod) || old.Spec.NodeName != "" || pod.Spec.NodeName == "" {
		return nil
	}
	if hasEnded(pod) { // while it was bound, so its claims may be released already
		return nil
	}
	return o.judgeBySupply(at, func() []Violation { return o.checkBinding(pod) })
}

// podClaim is a claim of a Pod.
type podClaim struct {
	// reference is how the Pod calls it, and name that of the object, or empty while it does not exist.
	reference, name string
	claim           *resourcev1.ResourceClaim
}

// claimsOf returns the claims that a Pod needs.
func (o *Observer) claimsOf(pod *corev1.Pod) []podClaim {
	var claims []podClaim
	for i := range pod.Spec.ResourceClaims {
		reference := &pod.Spec.ResourceClaims[i]
		c := podClaim{reference: reference.Name}
		if reference.ResourceClaimName != nil {
			c.name = *reference.ResourceClaimName
		} else if j := slices.IndexFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == reference.Name }); j >= 0 {
			if pod.Status.ResourceClaimStatuses[j].ResourceClaimName == nil {
				continue // the controller decided that no claim is needed
			}
			c.name = *pod.Status.ResourceClaimStatuses[j].ResourceClaimName
		}
		claims = append(claims, c)
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		claims = append(claims, podClaim{reference: "extended resources", name: extended.ResourceClaimName})
	}
	for i := range claims {
		claims[i].claim = o.claims[key{"ResourceClaim", pod.Namespace, claims[i].name}]
	}
	return claims
}

// checkBinding checks that a Pod that is bound now can use its claims on its node.
func (o *Observer) checkBinding(pod *corev1.Pod) []Violation {
	violations := o.checkExtendedResources(pod)
	for _, c := range o.claimsOf(pod) {
		objects := []Object{nameObject("Pod", pod)}
		if c.claim == nil {
			violations = append(violations, o.violation(boundWithClaims, objects, "its claim %s (%q) does not exist", c.reference, c.name))
			continue
		}
		objects = append(objects, nameObject("ResourceClaim", c.claim))
		allocation := c.claim.Status.Allocation
		switch {
		case allocation == nil:
			violations = append(violations, o.violation(boundWithClaims, objects, "its claim %s (%s) is not allocated", c.reference, c.name))
			continue
		case !isReservedFor(c.claim, pod):
			violations = append(violations, o.violation(boundWithClaims, objects, "its claim %s (%s) is not reserved for it", c.reference, c.name))
		}
		if !o.supply.mayAdmit(allocation.NodeSelector, pod.Spec.NodeName) {
			violations = append(violations, o.violation(boundToDevices, objects, "it is bound to node %s, which the node selector of claim %s does not admit", pod.Spec.NodeName, c.name))
		}
		violations = append(violations, o.checkBindingConditions(c.claim, objects)...)
	}
	return violations
}

// isReservedFor reports whether a claim is reserved for a Pod, or for its PodGroup.
func isReservedFor(claim *resourcev1.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourcev1.ResourceClaimConsumerReference) bool {
		group := pod.Spec.SchedulingGroup
		return consumer.Resource == "pods" && consumer.UID == pod.UID ||
			consumer.Resource == "podgroups" && group != nil && group.PodGroupName != nil && consumer.Name == *group.PodGroupName
	})
}

// checkBindingConditions checks that the drivers of a claim's devices have agreed to the binding.
func (o *Observer) checkBindingConditions(claim *resourcev1.ResourceClaim, objects []Object) []Violation {
	var violations []Violation
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		result := &results[i]
		for _, condition := range result.BindingConditions {
			if !hasCondition(claim, result, condition) {
				violations = append(violations, o.violation(boundAfterConditions, objects, "device %s does not have the binding condition %s", deviceOf(result), condition))
			}
		}
		for _, condition := range result.BindingFailureConditions {
			if hasCondition(claim, result, condition) {
				violations = append(violations, o.violation(boundAfterConditions, objects, "device %s has the binding failure condition %s", deviceOf(result), condition))
			}
		}
	}
	return violations
}

// isAgreedTo reports whether the driver of an allocated device has agreed to the binding of its Pods.
func isAgreedTo(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) bool {
	isSet := func(condition string) bool { return hasCondition(claim, result, condition) }
	return !slices.ContainsFunc(result.BindingFailureConditions, isSet) &&
		!slices.ContainsFunc(result.BindingConditions, func(condition string) bool { return !isSet(condition) })
}

// hasCondition reports whether a condition of an allocated device is true.
func hasCondition(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, condition string) bool {
	return slices.ContainsFunc(claim.Status.Devices, func(status resourcev1.AllocatedDeviceStatus) bool {
		if (deviceID{status.Driver, status.Pool, status.Device}) != deviceOf(result) {
			return false
		}
		if (status.ShareID == nil) != (result.ShareID == nil) || status.ShareID != nil && *status.ShareID != string(*result.ShareID) {
			return false
		}
		return slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool {
			return c.Type == condition && c.Status == metav1.ConditionTrue
		})
	})
}
