package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
)

const driver = "gpu.example.com"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

// slice is a slice of a node's pool with some devices.
func slice(node string, slices int64, devices ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice-of-" + node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 3, ResourceSliceCount: slices},
		},
	}
	for _, device := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name: device,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: new("GPU-" + node + "-" + device)}, driver + "/productName": {StringValue: new("H100")},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return s
}

// claim is a claim that has devices of a node, for Pods.
func claim(name, node string, devices []string, pods ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("claim-" + name), CreationTimestamp: at(0),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-scheduler", Subresource: "status", Time: new(at(2))}},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: int64(len(devices))},
		}}}},
	}
	if len(devices) == 0 {
		return c
	}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, device := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: driver, Pool: node, Device: device,
		})
	}
	for _, pod := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID("pod-" + pod)})
	}
	return c
}

// pod is a Pod on a node with a claim.
func pod(name, node, claim string, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("pod-" + name), CreationTimestamp: at(1)},
		Spec:       corev1.PodSpec{NodeName: node, ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions},
	}
}

var ready = corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: at(6)}

func failure(pod, message string, second int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: pod + message},
		InvolvedObject: corev1.ObjectReference{Name: pod, UID: types.UID("pod-" + pod)},
		Reason:         clusterdevices.FailedPrepare, Message: message, LastTimestamp: at(second), Count: 2,
	}
}

// fleet is a cluster with something of everything.
func fleet() []runtime.Object {
	tainted := slice("b", 2, "gpu-0")
	tainted.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	reported := claim("reported", "a", []string{"gpu-2"}, "late")
	reported.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
		Driver: driver, Pool: "a", Device: "gpu-2",
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Prepared", LastTransitionTime: at(4)}},
	}}
	everywhere := slice("", 1, "switch")
	everywhere.Name, everywhere.Spec.NodeName, everywhere.Spec.AllNodes, everywhere.Spec.Pool.Name = "shared", nil, new(true), "fabric"
	return []runtime.Object{
		slice("a", 1, "gpu-0", "gpu-1", "gpu-2", "gpu-3"), tainted, everywhere,
		claim("runs", "a", []string{"gpu-0"}, "runs"), claim("waits", "a", []string{"gpu-1"}, "waits"), reported, claim("none", "", nil),
		pod("runs", "a", "runs", ready), pod("waits", "a", "waits"), pod("late", "a", "reported"), pod("bare", "a", "none"), pod("lost", "a", "gone"),
		failure("waits", "disk is full", 3), failure("waits", "driver is not registered", 5),
	}
}
