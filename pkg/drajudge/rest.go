package drajudge

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// restCheck judges a state in which nothing is left to do.
type restCheck struct{ *Observer }

// AtRest judges what must hold once nothing is left to do: call it when the cluster has been quiet for longer than its
// controllers take. With kube-scheduler, that includes its backoff, and the 5 seconds after which it looks at binding conditions again.
func (o *Observer) AtRest(ctx context.Context) []Violation {
	var violations []Violation
	rest := &restCheck{o}
	needed := map[*resourcev1.ResourceClaim]bool{}
	for _, pod := range o.pods {
		if hasEnded(pod) {
			continue
		}
		for _, c := range o.claimsOf(pod) {
			needed[c.claim] = true
		}
	}
	for _, id := range sortedKeys(o.claims) {
		claim := o.claims[id]
		violations = append(violations, rest.checkReleased(claim)...)
		violations = append(violations, rest.checkReservedForWaiting(claim)...)
		if claim.Status.Allocation != nil && len(claim.Status.ReservedFor) == 0 && o.wasReserved[id] && !needed[claim] && !isMadeForPod(claim) {
			violations = append(violations, o.violation(allocationNeeded, []Object{nameObject("ResourceClaim", claim)}, "it is allocated, no longer reserved, and no Pod has it"))
		}
	}
	return append(append(violations, rest.checkWaitingPods(ctx)...), rest.checkPreemptions()...)
}

func sortedKeys[T any](objects map[key]T) []key {
	return slices.SortedFunc(maps.Keys(objects), key.compare)
}

// isMadeForPod reports whether a claim was made from a template or for the extended resources of a Pod.
func isMadeForPod(claim *resourcev1.ResourceClaim) bool {
	_, isFromTemplate := claim.Annotations[resourcev1.PodResourceClaimAnnotation]
	return isFromTemplate || claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// checkReleased checks that a claim is not held for Pods that no longer need it.
func (r *restCheck) checkReleased(claim *resourcev1.ResourceClaim) []Violation {
	var violations []Violation
	objects := []Object{nameObject("ResourceClaim", claim)}
	needsClaim := func(name string, uid types.UID) bool {
		pod := r.pods[key{"Pod", claim.Namespace, name}]
		return pod != nil && pod.UID == uid && !hasEnded(pod)
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" && claim.Status.Allocation != nil {
		if isMadeForPod(claim) && !needsClaim(owner.Name, owner.UID) {
			violations = append(violations, r.violation(claimReleased, objects, "it is allocated, and Pod %s, for which it was made, is gone or has ended", owner.Name))
		}
	}
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.Resource == "pods" && !needsClaim(consumer.Name, consumer.UID) {
			violations = append(violations, r.violation(reservationReleased, objects, "it is reserved for Pod %s, which is gone or has ended", consumer.Name))
		}
	}
	return violations
}

// checkReservedForWaiting checks that a claim is reserved only for Pods that are bound, or wait for what keeps them from it.
func (r *restCheck) checkReservedForWaiting(claim *resourcev1.ResourceClaim) []Violation {
	if claim.Status.Allocation == nil {
		return nil // checkReservations reports it
	}
	var violations []Violation
	for _, consumer := range claim.Status.ReservedFor {
		pod := r.pods[key{"Pod", claim.Namespace, consumer.Name}]
		if consumer.Resource != "pods" || pod == nil || pod.UID != consumer.UID || !isWaiting(pod) || r.awaitsConditions(pod) {
			continue
		}
		violations = append(violations, r.violation(reservationBound, []Object{nameObject("ResourceClaim", claim), nameObject("Pod", pod)},
			"it is reserved for Pod %s, which is not bound and waits for no binding condition", pod.Name))
	}
	return violations
}

// awaitsConditions reports whether a driver has yet to agree to the binding of a Pod, and has not refused it.
func (r *restCheck) awaitsConditions(pod *corev1.Pod) bool {
	isPending := false
	for _, c := range r.claimsOf(pod) {
		if c.claim == nil || c.claim.Status.Allocation == nil {
			continue
		}
		results := c.claim.Status.Allocation.Devices.Results
		for i := range results {
			has := func(condition string) bool { return hasCondition(c.claim, &results[i], condition) }
			if slices.ContainsFunc(results[i].BindingFailureConditions, has) {
				return false
			}
			isPending = isPending || slices.ContainsFunc(results[i].BindingConditions, func(condition string) bool { return !has(condition) })
		}
	}
	return isPending
}
