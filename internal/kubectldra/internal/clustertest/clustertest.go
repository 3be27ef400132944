package clustertest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// The drivers of the cluster, of which nothing is known but what they publish.
const (
	GPU    = "gpu.acme.test"
	Fabric = "fabric.acme.test"
)

// Start is when the claims were allocated.
var Start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// Objects are those of the cluster:
//   - node a has four GPUs: one runs, one fails, one is tainted, and one is free;
//   - node b, of another node pool, is not Ready, and has a GPU with two partitions of which one is in use;
//   - node c has lost a GPU that a claim still has, and half of its slices;
//   - all nodes share a pool of a fabric, of which a claim has a share;
//   - a Pod waits for devices.
func Objects() []runtime.Object {
	a := Slice("a", GPU, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
	a.Spec.Devices[2].Taints = []resourcev1.DeviceTaint{{Key: "acme.test/ecc", Value: "double-bit", Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: new(metav1.NewTime(Start))}}
	c := Slice("c", GPU, "gpu-0")
	c.Spec.Pool.ResourceSliceCount = 2
	sets, parts := divided("b")
	fabric := Slice("", Fabric, "port")
	fabric.Name, fabric.Spec.NodeName, fabric.Spec.AllNodes, fabric.Spec.Pool.Name = "fabric", nil, new(true), "rail-1"
	fabric.Spec.Devices[0].AllowMultipleAllocations = new(true)
	fabric.Spec.Devices[0].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"bandwidth": {Value: resource.MustParse("400G")}}
	share := Claim("share", Fabric, "rail-1", "port", "runs")
	share.Status.Allocation.Devices.Results[0].ShareID = new(types.UID("1"))
	share.Status.Allocation.Devices.Results[0].ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse("100G")}
	gone := Claim("lost", GPU, "d", "gpu-9", "holds")
	return []runtime.Object{
		a, c, sets, parts, fabric, Node("a", "h100", corev1.ConditionTrue), Node("b", "mig", corev1.ConditionUnknown), Node("c", "h100", corev1.ConditionTrue),
		Claim("runs", GPU, "a", "gpu-0", "runs"), Claim("fails", GPU, "a", "gpu-1", "fails"), Claim("part", GPU, "b", "gpu-0-half-0", "part"), gone, share,
		Pod("runs", "a", corev1.PodRunning, "runs", "share"), Pod("fails", "a", corev1.PodPending, "fails"), Pod("part", "b", corev1.PodRunning, "part"),
		Pod("holds", "d", corev1.PodRunning, "lost"), Pod("waits", "", corev1.PodPending, "none"),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "without-claims"}, Status: corev1.PodStatus{Phase: corev1.PodPending}},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fails"}, InvolvedObject: corev1.ObjectReference{Name: "fails", UID: "fails"},
			Reason: "FailedPrepareDynamicResources", Message: "driver gpu.acme.test is not registered", LastTimestamp: metav1.NewTime(Start),
		},
	}
}

// Slice is a slice of the pool of a node.
func Slice(node, driver string, devices ...string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + driver},
		Spec:       resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}},
	}
	for _, name := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"model": {StringValue: new("Acme H100")}, "uuid": {StringValue: new(fmt.Sprintf("ACME-%s-%s", node, name))},
		}})
	}
	return slice
}

// divided are the slices of a node with a GPU that is published whole and in halves.
func divided(node string) (sets, devices *resourcev1.ResourceSlice) {
	memory := func(amount string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}
	}
	sets, devices = Slice(node, GPU), Slice(node, GPU, "gpu-0", "gpu-0-half-0", "gpu-0-half-1")
	sets.Name, devices.Name = node+"-sets", node+"-devices"
	sets.Spec.Pool.ResourceSliceCount, devices.Spec.Pool.ResourceSliceCount = 2, 2
	sets.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "gpu-0", Counters: memory("80Gi")}}
	for i, amount := range []string{"80Gi", "40Gi", "40Gi"} {
		devices.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: memory(amount)}}
	}
	return sets, devices
}

// Node is a node of a node pool.
func Node(name, pool string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.sh/nodepool": pool, "zone": "z-" + name}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

// Claim is a claim that has a device, for a Pod.
func Claim(name, driver, pool, device, pod string) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	claim.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: new(metav1.NewTime(Start))}
	claim.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: driver, Pool: pool, Device: device}}
	if driver != Fabric {
		claim.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{pool},
		}}}}}
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID(pod)}}
	return claim
}

// Pod is a Pod with claims.
func Pod(name, node string, phase corev1.PodPhase, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
	}
	if node != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(Start)}}
	}
	return pod
}
