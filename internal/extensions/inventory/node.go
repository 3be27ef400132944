package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsNodeReady reports whether Pods can run on a node. A node that says nothing of itself is
// judged by its taints alone, as the scheduler does.
func IsNodeReady(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	}) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return (t.Key == corev1.TaintNodeUnreachable || t.Key == corev1.TaintNodeNotReady) && t.Effect != corev1.TaintEffectPreferNoSchedule
	})
}

// blockByNode keeps new claims from the devices of a node that is not ready. Claims that have
// a device keep it until Kubernetes evicts their Pods.
func blockByNode(devices []Device, node string) {
	for i := range devices {
		if device := &devices[i]; device.Shared || !device.isTaken() {
			device.BlockedBy = "node " + node + ", which is not Ready"
			device.State = device.computeState()
		}
	}
}
