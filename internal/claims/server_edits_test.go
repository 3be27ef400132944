package claims

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
)

// What follows changes objects as the scheduler, controllers and people do, and
// counts as no call.

func (s *server) pod(name string) *corev1.Pod {
	return apitest.Get[corev1.Pod](s.Server, "default", name)
}

func (s *server) claim(name string) *resourcev1.ResourceClaim {
	return apitest.Get[resourcev1.ResourceClaim](s.Server, "default", name)
}

func (s *server) editPod(name string, change func(pod *corev1.Pod)) {
	apitest.Edit(s.Server, "default", name, change)
}

func (s *server) editNode(name string, change func(node *corev1.Node)) {
	apitest.Edit(s.Server, "", name, change)
}

// editClaim drops the entries of devices that are no longer allocated, as the API
// server does.
func (s *server) editClaim(name string, change func(claim *resourcev1.ResourceClaim)) {
	apitest.Edit(s.Server, "default", name, func(claim *resourcev1.ResourceClaim) {
		change(claim)
		if claim.Status.Allocation == nil {
			claim.Status.Devices = nil
		}
	})
}

// deallocate is what the claim controller does when the last consumer is gone.
func (s *server) deallocate(name string) {
	s.editClaim(name, func(claim *resourcev1.ResourceClaim) {
		claim.Status.Allocation, claim.Status.ReservedFor = nil, nil
	})
}

// unreserve is what the claim controller does when another consumer is left.
func (s *server) unreserve(name string, uid types.UID) {
	s.editClaim(name, func(claim *resourcev1.ResourceClaim) {
		var left []resourcev1.ResourceClaimConsumerReference
		for _, consumer := range claim.Status.ReservedFor {
			if consumer.UID != uid {
				left = append(left, consumer)
			}
		}
		claim.Status.ReservedFor = left
	})
}

// reserve is what the scheduler does for another Pod.
func (s *server) reserve(name string, pod *corev1.Pod) {
	s.editClaim(name, func(claim *resourcev1.ResourceClaim) {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, consumer(pod))
	})
}
