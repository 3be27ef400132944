package drajudge

import (
	"cmp"
	"context"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AtRest judges what must hold once nothing is left to do: call it when the cluster has been quiet for longer than its
// controllers take. With kube-scheduler, that includes its backoff.
func (o *Observer) AtRest(ctx context.Context) []Violation {
	var violations []Violation
	for _, id := range slices.SortedFunc(maps.Keys(o.claims), key.compare) {
		violations = append(violations, o.checkReleased(o.claims[id])...)
	}
	return append(violations, o.checkWaitingPods(ctx)...)
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// checkReleased checks that a claim is not held for Pods that no longer need it.
func (o *Observer) checkReleased(claim *resourcev1.ResourceClaim) []Violation {
	var violations []Violation
	objects := []Object{nameObject("ResourceClaim", claim)}
	needsClaim := func(name string, uid types.UID) bool {
		pod := o.pods[key{"Pod", claim.Namespace, name}]
		return pod != nil && pod.UID == uid && !hasEnded(pod)
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" && claim.Status.Allocation != nil {
		if _, isFromTemplate := claim.Annotations[resourcev1.PodResourceClaimAnnotation]; isFromTemplate && !needsClaim(owner.Name, owner.UID) {
			violations = append(violations, o.violation(claimReleased, objects, "it is allocated, and Pod %s, for which it was made, is gone or has ended", owner.Name))
		}
	}
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.Resource == "pods" && !needsClaim(consumer.Name, consumer.UID) {
			violations = append(violations, o.violation(reservationReleased, objects, "it is reserved for Pod %s, which is gone or has ended", consumer.Name))
		}
	}
	return violations
}
