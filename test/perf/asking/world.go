package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

const (
	namespace = "default"
	// waitingPod wants all devices of a node, of which each has given some away.
	waitingPod     = "waiting"
	devicesPerNode = 8
)

// fill makes nodes with devices, claims that have some of them, a Pod for each claim, and one that
// waits.
func fill(ctx context.Context, client kubernetes.Interface, of size) error {
	_, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create ServiceAccount: %w", err)
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fleet.Driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", fleet.Driver)}}},
	}}
	if _, err := client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create DeviceClass: %w", err)
	}
	fmt.Fprintf(os.Stderr, "creating %d nodes with slices ...\n", of.nodes)
	if err := fleet.InParallel(of.nodes, func(i int) error { return createNode(ctx, client, i) }); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "creating %d claims with Pods ...\n", of.claims)
	if err := fleet.InParallel(of.claims, func(i int) error { return createUse(ctx, client, i, of.nodes) }); err != nil {
		return err
	}
	if _, err := client.ResourceV1().ResourceClaims(namespace).Create(ctx, newClaim(waitingPod, devicesPerNode), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create claim: %w", err)
	}
	_, err = client.CoreV1().Pods(namespace).Create(ctx, newPod(waitingPod), metav1.CreateOptions{})
	return err
}

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

func createNode(ctx context.Context, client kubernetes.Interface, i int) error {
	node := fleet.NewNode(nodeName(i))
	node.Status = corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("192"), corev1.ResourceMemory: resource.MustParse("2Ti"), corev1.ResourcePods: resource.MustParse("110")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	created, err := client.CoreV1().Nodes().Create(ctx, node.DeepCopy(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	created.Spec.Taints = nil // that of a new node
	if created, err = client.CoreV1().Nodes().Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update node: %w", err)
	}
	created.Status = node.Status
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update node: %w", err)
	}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: fleet.Driver, NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
	}}
	for d := range devicesPerNode {
		slice.Spec.Devices = append(slice.Spec.Devices, newDevice(d))
	}
	_, err = client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
	return err
}

func newDevice(index int) resourcev1.Device {
	return resourcev1.Device{
		Name: fmt.Sprintf("gpu-%d", index),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": {StringValue: new("gpu")}, "productName": {StringValue: new("NVIDIA H100 80GB HBM3")},
			"brand": {StringValue: new("Nvidia")}, "architecture": {StringValue: new("Hopper")}, "index": {IntValue: new(int64(index))},
			"uuid": {StringValue: new(fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", index))}, "driverVersion": {VersionValue: new("570.86.15")},
			"cudaComputeCapability": {VersionValue: new("9.0.0")}, "resource.kubernetes.io/pcieRoot": {StringValue: new(fmt.Sprintf("pci0000:%02d", index))},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}},
	}
}

func newClaim(name string, count int64) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: fleet.Driver, Count: count}}},
	}}}
}

func newPod(claim string) *corev1.Pod {
	return fleet.NewPod(namespace, claim, "", corev1.PodResourceClaim{ResourceClaimName: &claim})
}

// createUse makes a claim that has a device, and a Pod that runs with it.
func createUse(ctx context.Context, client kubernetes.Interface, i, nodes int) error {
	name, node := fmt.Sprintf("train-%05d", i), nodeName(i%nodes)
	claim, err := client.ResourceV1().ResourceClaims(namespace).Create(ctx, newClaim(name, 1), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create claim: %w", err)
	}
	pod := newPod(name)
	pod.Spec.NodeName = node
	if pod, err = client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Pod: %w", err)
	}
	pod.Status.Phase = corev1.PodRunning
	if _, err = client.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update Pod: %w", err)
	}
	claim.Status = resourcev1.ResourceClaimStatus{
		Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
				Request: "gpu", Driver: fleet.Driver, Pool: node, Device: fmt.Sprintf("gpu-%d", i/nodes),
			}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}}}}},
		},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: pod.UID}},
	}
	_, err = client.ResourceV1().ResourceClaims(namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
