package drajudge

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// observeClaim judges a change of a claim.
func (o *Observer) observeClaim(ctx context.Context, claim *resourcev1.ResourceClaim, isDeleted bool, at time.Time) []Violation {
	id := keyOf(claim, "ResourceClaim")
	old := o.claims[id]
	var violations []Violation
	if old != nil && !isSame(old, claim) { // the deletion of the old one was missed
		o.removeClaim(id)
		delete(o.wasReserved, id)
		old = nil
	}
	if isDeleted {
		if old != nil {
			violations = o.checkReservationsKept(old, nil)
		}
		o.removeClaim(id)
		delete(o.wasReserved, id)
		return violations
	}
	if old == nil {
		violations = append(violations, o.checkAdminNamespace(claim)...)
	} else {
		violations = append(violations, o.checkReservationsKept(old, claim)...)
	}
	o.removeClaim(id)
	o.claims[id] = claim
	if len(claim.Status.ReservedFor) > 0 {
		o.wasReserved[id] = true
	}
	if old == nil {
		violations = append(violations, o.checkQuota(claim)...)
	}
	violations = append(violations, o.checkReservations(claim)...)
	allocation := claim.Status.Allocation
	if allocation == nil {
		return violations
	}
	o.holders.addClaim(claim)
	switch {
	case old == nil || old.Status.Allocation == nil:
		violations = append(violations, o.checkHolders(claim)...)
		if old != nil {
			violations = append(violations, o.judgeBySupply(at, func() []Violation { return o.checkAllocation(ctx, claim) })...)
		}
	case !apiequality.Semantic.DeepEqual(old.Status.Allocation, allocation):
		violations = append(violations, o.checkHolders(claim)...)
		violations = append(violations, o.violation(allocationUnchanged, []Object{nameObject("ResourceClaim", claim)},
			"the allocation has changed in one write, without its removal in between"))
	}
	return violations
}

func (h holders) addClaim(claim *resourcev1.ResourceClaim) {
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		id := deviceOf(&results[i])
		h[id] = append(h[id], holder{claim, &results[i]})
	}
}

// removeClaim removes what is known of a claim.
func (o *Observer) removeClaim(id key) {
	claim := o.claims[id]
	delete(o.claims, id)
	if claim != nil && claim.Status.Allocation != nil {
		o.holders.removeClaim(claim)
	}
}

func (h holders) removeClaim(claim *resourcev1.ResourceClaim) {
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		device := deviceOf(&results[i])
		left := slices.DeleteFunc(h[device], func(other holder) bool { return other.claim == claim })
		if len(left) == 0 {
			delete(h, device)
		} else {
			h[device] = left
		}
	}
}

// checkHolders checks that a claim has no device that it may not have together with others.
func (o *Observer) checkHolders(claim *resourcev1.ResourceClaim) []Violation {
	var violations []Violation
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		result := &results[i]
		for _, other := range o.holders[deviceOf(result)] {
			if other.result == result || canShare(holder{claim, result}, other) {
				continue
			}
			objects := []Object{nameObject("ResourceClaim", claim)}
			if other.claim != claim {
				objects = append(objects, nameObject("ResourceClaim", other.claim))
			}
			violations = append(violations, o.violation(deviceOnce, objects,
				"device %s is allocated for request %s while request %s of claim %s has it", deviceOf(result), result.Request, other.result.Request, other.claim.Name))
			break
		}
	}
	return violations
}

// canShare reports whether two results may be for one device. Admin access is to devices of other claims.
func canShare(a, b holder) bool {
	if a.result.ShareID != nil && b.result.ShareID != nil && *a.result.ShareID != *b.result.ShareID {
		return true
	}
	return a.claim != b.claim && (isTrue(a.result.AdminAccess) || isTrue(b.result.AdminAccess))
}

// checkReservations checks the reservations of a claim by themselves.
func (o *Observer) checkReservations(claim *resourcev1.ResourceClaim) []Violation {
	var violations []Violation
	objects := []Object{nameObject("ResourceClaim", claim)}
	if count := len(claim.Status.ReservedFor); count > resourcev1.ResourceClaimReservedForMaxSize {
		violations = append(violations, o.violation(reservationLimit, objects, "it is reserved for %d consumers", count))
	}
	if count := len(claim.Status.ReservedFor); count > 0 && claim.Status.Allocation == nil {
		violations = append(violations, o.violation(reservedWhileUsed, objects, "it is reserved for %d consumers and has no allocation", count))
	}
	return violations
}

// checkReservationsKept checks that a change of a claim, or its deletion, takes it from no Pod that uses it.
func (o *Observer) checkReservationsKept(old, claim *resourcev1.ResourceClaim) []Violation {
	var violations []Violation
	for _, consumer := range old.Status.ReservedFor {
		if claim != nil && slices.Contains(claim.Status.ReservedFor, consumer) {
			continue
		}
		pod := o.pods[key{"Pod", old.Namespace, consumer.Name}]
		if consumer.Resource != "pods" || pod == nil || pod.UID != consumer.UID || pod.Spec.NodeName == "" || hasEnded(pod) {
			continue
		}
		violations = append(violations, o.violation(reservedWhileUsed, []Object{nameObject("ResourceClaim", old), nameObject("Pod", pod)},
			"the claim is no longer reserved for Pod %s, which is bound to node %s and has not ended", pod.Name, pod.Spec.NodeName))
	}
	return violations
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// checkAdminNamespace checks that a new claim may ask for admin access.
func (o *Observer) checkAdminNamespace(claim *resourcev1.ResourceClaim) []Violation {
	namespace := o.supply.namespace(claim.Namespace)
	if namespace == nil || namespace.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true" {
		return nil // an unknown namespace was not recorded
	}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if request.Exactly == nil || !isTrue(request.Exactly.AdminAccess) {
			continue
		}
		return []Violation{o.violation(adminNamespace, []Object{nameObject("ResourceClaim", claim)},
			"request %s has admin access, and namespace %s lacks the label %s=true", request.Name, claim.Namespace, resourcev1.DRAAdminNamespaceLabelKey)}
	}
	return nil
}
