package worldtest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// The drivers of which nothing is known but what they publish.
const (
	Driver = "gpu.example.com"
	Fabric = "fabric.example.com"
)

// Namespace is that of all claims and Pods.
const Namespace = "ml"

// Start is when claims are created.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Now is an hour later.
var Now = metav1.NewTime(Start.Add(time.Hour))

// At is some seconds after the start.
func At(seconds int) metav1.Time {
	return metav1.NewTime(Start.Add(time.Duration(seconds) * time.Second))
}

// Slice is the only slice of a node's pool.
func Slice(node string, devices ...string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus", CreationTimestamp: At(-600), OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node}}},
		Spec:       resourcev1.ResourceSliceSpec{Driver: Driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 3, ResourceSliceCount: 1}},
	}
	for _, device := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: device,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: new("GPU-" + node + "-" + device)}, "productName": {StringValue: new(tabletest.Product)},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return slice
}

// Claim is a claim that has a device of a node for each name, and is reserved for Pods.
func Claim(name, node string, devices []string, pods ...string) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("claim-" + name), CreationTimestamp: At(0)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: int64(max(1, len(devices)))},
		}}}},
	}
	if len(devices) > 0 {
		claim.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: new(At(2))}
		claim.Finalizers = []string{resourcev1.Finalizer}
	}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: Driver, Pool: node, Device: device,
		})
	}
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID("pod-" + pod)})
	}
	return claim
}

// Pod is a Pod on a node, or on none, with a claim.
func Pod(name, node, claim string, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("pod-" + name), CreationTimestamp: At(1)},
		Spec:       corev1.PodSpec{NodeName: node, ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions},
	}
}

// Node is a node that is ready, or not.
func Node(name string, isReady bool) *corev1.Node {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: At(0)}
	if !isReady {
		ready.Status, ready.Message = corev1.ConditionUnknown, "Kubelet stopped posting node status."
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions:  []corev1.NodeCondition{ready},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")},
	}}
}

// Class is a class of the devices for which CEL expressions are true.
func Class(name string, expressions ...string) *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, expression := range expressions {
		class.Spec.Selectors = append(class.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return class
}

// OfDriver is true for the devices of Driver.
const OfDriver = `device.driver == "` + Driver + `"`

// Prepared is the condition of a Pod whose claims are prepared.
var Prepared = corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: At(6)}

// Unschedulable is the condition of a Pod that no node takes.
var Unschedulable = corev1.PodCondition{
	Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	Message: "0/2 nodes are available: 2 cannot allocate all claims.", LastTransitionTime: At(3),
}

// Failure is the event of a kubelet that cannot prepare the claims of a Pod.
func Failure(pod string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: Namespace, Name: pod + ".1"},
		InvolvedObject: corev1.ObjectReference{Name: pod, UID: types.UID("pod-" + pod)}, Reason: "FailedPrepareDynamicResources",
		Message: fmt.Sprintf("Failed to prepare dynamic resources: DRA driver %s is not registered", Driver), FirstTimestamp: At(4), LastTimestamp: At(60), Count: 9,
	}
}
