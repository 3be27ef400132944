package claims

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// What follows changes objects as the scheduler, controllers and people do, and
// counts as no call.

func resourceOf(object runtime.Object) schema.GroupVersionResource {
	switch object.(type) {
	case *corev1.Pod:
		return podResource
	case *corev1.Node:
		return nodeResource
	case *resourcev1.ResourceClaim:
		return claimResource
	case *resourcev1.ResourceSlice:
		return sliceResource
	}
	panic(fmt.Sprintf("unexpected %T", object))
}

func metaOf(object runtime.Object) metav1.Object {
	return object.(metav1.Object)
}

func (s *server) add(object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object = object.DeepCopyObject()
	s.version++
	metaOf(object).SetResourceVersion(strconv.Itoa(s.version))
	if claim, ok := object.(*resourcev1.ResourceClaim); ok {
		claim.SetGroupVersionKind(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"))
	}
	must(s.tracker.Create(resourceOf(object), object, metaOf(object).GetNamespace()))
}

func (s *server) remove(object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	must(s.tracker.Delete(resourceOf(object), metaOf(object).GetNamespace(), metaOf(object).GetName()))
}

func (s *server) pod(name string) *corev1.Pod {
	object, err := s.tracker.Get(podResource, "default", name)
	must(err)
	return object.(*corev1.Pod)
}

func (s *server) claim(name string) *resourcev1.ResourceClaim {
	object, err := s.tracker.Get(claimResource, "default", name)
	must(err)
	return object.(*resourcev1.ResourceClaim)
}

func (s *server) editPod(name string, change func(pod *corev1.Pod)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.pod(name)
	pod := live.DeepCopy()
	change(pod)
	_, err := s.store(live, pod)
	must(err)
}

func (s *server) editNode(name string, change func(node *corev1.Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, err := s.tracker.Get(nodeResource, "", name)
	must(err)
	live := object.(*corev1.Node)
	node := live.DeepCopy()
	change(node)
	_, err = s.store(live, node)
	must(err)
}

// editClaim keeps managedFields right. Entries of devices that are no longer
// allocated are dropped, as the API server does.
func (s *server) editClaim(name string, change func(claim *resourcev1.ResourceClaim)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.claim(name)
	claim := live.DeepCopy()
	change(claim)
	if claim.Status.Allocation == nil {
		claim.Status.Devices = nil
	}
	updated, err := s.fields.Update(live, claim, "someone")
	must(err)
	_, err = s.store(live, updated)
	must(err)
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

func must(err error) {
	if err != nil {
		panic(err)
	}
}
