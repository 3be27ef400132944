package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// findPreparedPod gets a Pod whose claims are prepared, and its node, which is fake.
func (c *command) findPreparedPod(ctx context.Context, client kubernetes.Interface, namespace, name string) (*corev1.Pod, *corev1.Node, error) {
	pod, err := reading.GetPod(ctx, client, namespace, name)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !facts.UsesClaims(pod) && pod.Spec.NodeName != "":
		return nil, nil, fmt.Errorf("pod %s/%s: uses no ResourceClaim, so no driver injects anything: name one in spec.resourceClaims, or give the Pod an extended resource of a DeviceClass",
			namespace, name)
	case pod.Spec.NodeName == "":
		return nil, nil, fmt.Errorf("pod %s/%s: is not bound to a node yet: kwok-dractl why says why", namespace, name)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("get node %s of Pod %s/%s: %w", pod.Spec.NodeName, namespace, name, err)
	}
	if !c.managed.Matches(node) {
		return nil, nil, fmt.Errorf("pod %s/%s: is on node %s, which is not fake, by %s: ask its containers, or choose the fake nodes with --manage-all-nodes or another --manage option",
			namespace, name, node.Name, &c.managed)
	}
	switch {
	case facts.ReadyToStart(pod) == corev1.ConditionTrue:
	case facts.IsTerminal(pod):
		return nil, nil, fmt.Errorf("pod %s/%s: has ended, and its claims are unprepared", namespace, name)
	default:
		return nil, nil, fmt.Errorf("pod %s/%s: its claims are not prepared, so no container would start: kwok-dractl why says why", namespace, name)
	}
	lifecycle.Slim(node) // as the sidecar sees it
	return pod, node, nil
}
