// Package claimstest has the objects that the tests of claims are made of.
package claimstest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// NewNode is a Node that kwok manages.
func NewNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			UID:         types.UID("uid-of-" + name),
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}},
	}
}

// NewPod is a Pod bound to the node n, with one container that uses the claims.
// A claim has its own name in the Pod.
func NewPod(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: claim})
	}
	return pod
}

// Consumer is a reference to a Pod.
func Consumer(pod *corev1.Pod) resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID}
}

// Allocated is a claim as the scheduler leaves it: allocated the device gpu-0 of
// driver d on the node n, and reserved for the Pods.
func Allocated(name string, pods ...*corev1.Pod) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-of-" + name)}}
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, Consumer(pod))
	}
	Allocate(claim, Device("d", "gpu-0"))
	return claim
}

// Allocate allocates devices on the node n.
func Allocate(claim *resourcev1.ResourceClaim, results ...resourcev1.DeviceRequestAllocationResult) {
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: results},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}},
		}}},
	}
}

// Device is an allocated device of the pool n.
func Device(driver, name string) resourcev1.DeviceRequestAllocationResult {
	return resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: driver, Pool: "n", Device: name}
}

// Share is a device of which the claim has a share.
func Share(share types.UID, result resourcev1.DeviceRequestAllocationResult) resourcev1.DeviceRequestAllocationResult {
	result.ShareID = &share
	return result
}

// Template is a ResourcePoolTemplate of a driver with gpu-0 to gpu-3, and more
// of its spec.
func Template(driver, more string) string {
	return fmt.Sprintf("---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: of-%s}\n"+
		"spec:\n  driver: %s\n  devices: [{name: gpu, count: 4}]\n%s", driver, driver, more)
}

// Configuration is a KwokDRAConfiguration, its spec in YAML's flow style.
func Configuration(spec string) string {
	return "---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: KwokDRAConfiguration\nmetadata: {name: c}\nspec: " + spec + "\n"
}

// Say sets the condition PrepareResources, as Stages do.
func Say(status corev1.ConditionStatus, message string) func(pod *corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.PrepareResources })
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PrepareResources, Status: status, Message: message})
	}
}

// statusOf reads "claim:a x=Unknown y=Healthy".
func statusOf(text string) corev1.ResourceStatus {
	words := strings.Fields(text)
	status := corev1.ResourceStatus{Name: corev1.ResourceName(words[0])}
	for _, word := range words[1:] {
		at := strings.LastIndex(word, "=") // CDI ids have one themselves
		status.Resources = append(status.Resources, corev1.ResourceHealth{ResourceID: corev1.ResourceID(word[:at]), Health: corev1.ResourceHealthStatus(word[at+1:])})
	}
	return status
}

// StatusesOf reads several.
func StatusesOf(texts ...string) []corev1.ResourceStatus {
	var statuses []corev1.ResourceStatus
	for _, text := range texts {
		statuses = append(statuses, statusOf(text))
	}
	return statuses
}

// Noon is a time of day.
var Noon = time.Date(2026, 7, 20, 12, 0, 0, 0, time.UTC)
