package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Driver is that of the templates, and the name of the class that claims are of.
const Driver = "gpu.example.com"

// CreateNamespace creates a namespace in which Pods can be created at once.
func CreateNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	_, err = client.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ServiceAccount: %w", err)
	}
	return nil
}

// NewPod is a Pod with one container that has one claim.
func NewPod(namespace, name, scheduler string, claim corev1.PodResourceClaim) *corev1.Pod {
	claim.Name = "gpu"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			SchedulerName:  scheduler,
			ResourceClaims: []corev1.PodResourceClaim{claim},
			Containers: []corev1.Container{{
				Name: "c", Image: "c", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
			}},
			AutomountServiceAccountToken: new(false),
		},
	}
}

// ClaimSpec asks for one device.
func ClaimSpec() resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: Driver},
	}}}}
}

// CreateAllocated creates a Pod that NewPod made with a claim of its own name, and
// the claim, with a device of a node allocated to it as the scheduler would.
func CreateAllocated(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, node, device string) error {
	created, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	claims := client.ResourceV1().ResourceClaims(pod.Namespace)
	claim, err := claims.Create(ctx, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Spec: ClaimSpec()}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create claim %s: %w", pod.Name, err)
	}
	claim.Status = allocationStatus(created, node, device)
	if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("allocate claim %s: %w", pod.Name, err)
	}
	return nil
}

// allocationStatus is what the scheduler writes.
func allocationStatus(pod *corev1.Pod, node, device string) resourcev1.ResourceClaimStatus {
	return resourcev1.ResourceClaimStatus{
		Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: Driver, Pool: node, Device: device}},
			},
			NodeSelector: SelectNode(node),
		},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
	}
}

// SelectNode selects one node, as the scheduler does for a device of a pool of that node.
func SelectNode(name string) *corev1.NodeSelector {
	match := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{match}}}}
}

// Bind binds a Pod to a node.
func Bind(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, node string) error {
	return client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

// DeletePods deletes the Pods and claims of a namespace, and waits until none is
// left.
func DeletePods(ctx context.Context, client kubernetes.Interface, namespace string) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	claims := client.ResourceV1().ResourceClaims(namespace)
	if err := claims.DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete claims: %w", err)
	}
	for deadline := time.Now().Add(patience); ; {
		left, err := claims.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(left.Items) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			claim := &left.Items[0]
			return fmt.Errorf("wait for the claims to go: %s is still there after %s: deleted at %v, finalizers %v, allocated %t, reserved for %v",
				claim.Name, patience, claim.DeletionTimestamp, claim.Finalizers, claim.Status.Allocation != nil, claim.Status.ReservedFor)
		}
		if err := Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
