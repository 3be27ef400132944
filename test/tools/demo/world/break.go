package world

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Break is a device whose end shows.
type Break struct {
	// Node and Device name the device.
	Node, Device string
	// Pod is the one that has it. Its Deployment replaces it.
	Pod string
	// Free is how many devices of its kind nobody has, and Nodes are where they are.
	Free  int
	Nodes []string
}

// Taint is the command that breaks the device.
func (b *Break) Taint() string {
	return fmt.Sprintf("kubectl annotate node %s %s=%s:gpu.nvidia.com/xid=79:NoExecute", b.Node, deviceTaints, b.Device)
}

// Repair is the command that makes the device whole again.
func (b *Break) Repair() string {
	return fmt.Sprintf("kubectl annotate node %s %s-", b.Node, deviceTaints)
}

const deviceTaints = "dra.kwok.x-k8s.io/device-taints"

// errNoDevice says that the Pods of the demo have no device.
var errNoDevice = errors.New("no Pod of the Deployment training has a device")

// ToBreak returns a device that a Pod of the Deployment has.
func (w *World) ToBreak(ctx context.Context) (*Break, error) {
	pods, err := w.client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=training"})
	if err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	var b *Break
	used := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		device, err := w.deviceOf(ctx, pod)
		if err != nil {
			return nil, err
		}
		used[pod.Spec.NodeName]++
		found := &Break{Node: pod.Spec.NodeName, Device: device, Pod: pod.Name}
		if b == nil || found.Node+found.Device < b.Node+b.Device {
			b = found
		}
	}
	if b == nil {
		return nil, errNoDevice
	}
	return b, w.countFree(ctx, b, used)
}

// deviceOf is the device that a Pod has claimed.
func (w *World) deviceOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	if len(pod.Status.ResourceClaimStatuses) == 0 || pod.Status.ResourceClaimStatuses[0].ResourceClaimName == nil {
		return "", fmt.Errorf("find the claim of Pod %s: %w", pod.Name, errNoDevice)
	}
	name := *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
	claim, err := w.client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get claim: %w", err)
	}
	if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) == 0 {
		return "", fmt.Errorf("find the device of claim %s: %w", name, errNoDevice)
	}
	return claim.Status.Allocation.Devices.Results[0].Device, nil
}

// countFree fills in what is free of nodes of the same type.
func (w *World) countFree(ctx context.Context, b *Break, used map[string]int) error {
	broken, err := w.client.CoreV1().Nodes().Get(ctx, b.Node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	selector := metav1.ListOptions{LabelSelector: corev1.LabelInstanceTypeStable + "=" + broken.Labels[corev1.LabelInstanceTypeStable]}
	nodes, err := w.client.CoreV1().Nodes().List(ctx, selector)
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		node := nodes.Items[i].Name
		published, err := w.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return fmt.Errorf("list slices: %w", err)
		}
		free := -used[node]
		for _, slice := range published.Items {
			free += len(slice.Spec.Devices)
		}
		if free > 0 {
			b.Free += free
			b.Nodes = append(b.Nodes, node)
		}
	}
	slices.Sort(b.Nodes)
	return nil
}
