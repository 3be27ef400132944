package faults

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reap deletes the Pods that have ended and name a claim. While they exist and others use the
// claim, kube-controller-manager writes it without end (kubernetes#141274). The sidecars have
// been looked at beside that; what follows would take most of its time for it, and nothing
// would ever be at rest.
func (r *run) reap(ctx context.Context) error {
	s, err := r.look(ctx)
	if err != nil {
		return err
	}
	pods := r.world.client.CoreV1().Pods(namespace)
	for _, pod := range s.pods {
		if !ended(pod) || len(pod.Spec.ResourceClaims) == 0 || pod.Spec.ResourceClaims[0].ResourceClaimName == nil {
			continue
		}
		err := persist(ctx, func(ctx context.Context) error {
			return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		})
		if err != nil {
			return err
		}
	}
	return r.settle(ctx)
}
