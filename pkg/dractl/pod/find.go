package pod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// find gets a Pod whose claims are prepared, and its node, which is fake.
func (c *command) find(ctx context.Context, client kubernetes.Interface, namespace, name string) (*corev1.Pod, *corev1.Node, error) {
	pod, err := cluster.GetPod(ctx, client, namespace, name)
	if err != nil {
		return nil, nil, err
	}
	if err := unbound(pod); err != nil {
		return nil, nil, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("get node %s of Pod %s/%s: %w", pod.Spec.NodeName, namespace, name, err)
	}
	if !c.managed.Matches(node) {
		return nil, nil, fmt.Errorf("pod %s/%s: is on node %s, which is not fake, by %s: ask its containers, or choose the fake nodes with --manage-all-nodes or another --manage option",
			namespace, name, node.Name, &c.managed)
	}
	if err := unprepared(pod); err != nil {
		return nil, nil, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	lifecycle.Slim(node) // as the sidecar sees it
	return pod, node, nil
}

// unbound is why a Pod has no devices yet, or never will.
func unbound(pod *corev1.Pod) error {
	switch {
	case !facts.UsesClaims(pod) && pod.Spec.NodeName != "":
		return errors.New("uses no ResourceClaim, so no driver injects anything: name one in spec.resourceClaims, or give the Pod an extended resource of a DeviceClass")
	case pod.Spec.NodeName == "":
		return errors.New("is not bound to a node yet: kwok-dractl why says why")
	}
	return nil
}

// unprepared is why the containers of a Pod see nothing yet.
func unprepared(pod *corev1.Pod) error {
	if facts.ReadyToStart(pod) == corev1.ConditionTrue {
		return nil
	}
	if facts.IsTerminal(pod) {
		return errors.New("has ended, and its claims are unprepared")
	}
	return errors.New("its claims are not prepared, so no container would start: kwok-dractl why says why")
}

// claimsOf gets the claims of a Pod, by name.
func claimsOf(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (map[string]*resourcev1.ResourceClaim, error) {
	claims := map[string]*resourcev1.ResourceClaim{}
	for _, key := range facts.ClaimKeys(pod) {
		claim, err := client.ResourceV1().ResourceClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("get ResourceClaim %s: %w", key.Name, err)
		}
		claims[key.Name] = claim
	}
	return claims, nil
}
