package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// explainEnding says why a Pod that is being deleted is still there.
func (c *Cluster) explainEnding(answer *Answer) *Answer {
	pod := answer.pod
	isOverdue := c.Now.After(pod.DeletionTimestamp.Time)
	var reasons []string
	switch {
	case pod.Spec.NodeName == "" || facts.IsTerminal(pod):
	case isOverdue:
		reasons = append(reasons, c.describeOverdue(pod))
	default:
		reasons = append(reasons, "its containers have until "+formatTime(pod.DeletionTimestamp.Time)+" to end")
	}
	if len(pod.Finalizers) > 0 {
		reasons = append(reasons, "it stays until its finalizers are removed: "+strings.Join(pod.Finalizers, ", "))
	}
	if warning := c.Warnings[pod.UID]; warning != nil && isOverdue {
		answer.Details = append(answer.Details, describeEvent(warning))
	}
	for _, claim := range c.claimsOf(pod) {
		answer.Details = append(answer.Details, "it keeps claim "+claim.Name)
	}
	return answer.setState(Terminating, metav1.Time{}, cmp.Or(strings.Join(reasons, "; "), "nothing is known that keeps it"))
}

// describeOverdue says what keeps a Pod on its node beyond its grace period.
func (o *Objects) describeOverdue(pod *corev1.Pod) string {
	claims, silent := o.claimsOf(pod), o.silentDrivers(pod)
	names := make([]string, len(claims))
	for i, claim := range claims {
		names[i] = claim.Name
	}
	isRunning := func(status corev1.ContainerStatus) bool { return status.State.Terminated == nil }
	switch reason := o.describeNode(pod.Spec.NodeName); {
	case reason != "":
		return reason + ", so no kubelet ends it"
	case slices.ContainsFunc(pod.Status.ContainerStatuses, isRunning):
		return "its containers still run on node " + pod.Spec.NodeName
	case len(claims) == 0:
		return "its node " + pod.Spec.NodeName + " has not ended it in its grace period"
	case len(silent) > 0:
		return fmt.Sprintf("its claims are still to be unprepared (%s), and %s", strings.Join(names, ", "), silent[0])
	}
	return fmt.Sprintf("its containers have ended, and the kubelet of node %s has not unprepared its claims: %s", pod.Spec.NodeName, strings.Join(names, ", "))
}

// describeNode says that a node does not exist, or that its kubelet does not report. It returns "" for
// a node that is ready, and where nodes are not known.
func (o *Objects) describeNode(name string) string {
	if o.Nodes == nil || o.isUnread("nodes") {
		return ""
	}
	node := o.Nodes[name]
	if node == nil {
		return "node " + name + " does not exist"
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Sprintf("node %s is not ready (%s)", name, joinNonEmpty(": ", condition.Reason, condition.Message))
		}
	}
	return ""
}

// claimsOf returns the claims of a Pod that exist.
func (o *Objects) claimsOf(pod *corev1.Pod) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, key := range facts.ClaimKeys(pod) {
		if claim := o.Claims[key]; claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// silentDrivers says which drivers of the devices of a Pod publish nothing on its node.
func (o *Objects) silentDrivers(pod *corev1.Pod) []string {
	var lines []string
	seen := map[string]bool{}
	for _, claim := range o.claimsOf(pod) {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			driver := claim.Status.Allocation.Devices.Results[i].Driver
			if seen[driver] {
				continue
			}
			seen[driver] = true
			if silence := o.DescribeSilentDriver(driver, pod.Spec.NodeName); silence != "" {
				lines = append(lines, silence)
			}
		}
	}
	return lines
}

// DescribeSilentDriver says that a driver has no slice of a node, nor one of no node in particular. It returns "" for a
// driver that has, and where slices are not known. A driver that is not registered with the kubelet has its slices
// deleted there.
func (o *Objects) DescribeSilentDriver(driver, node string) string {
	isOnNode := func(slice *resourcev1.ResourceSlice) bool {
		return slice.Spec.Driver == driver && (slice.Spec.NodeName == nil || *slice.Spec.NodeName == node)
	}
	if o.Slices == nil && o.Nodes == nil || o.isUnread("resourceslices") || slices.ContainsFunc(o.Slices, isOnNode) {
		return ""
	}
	return fmt.Sprintf("driver %s publishes no devices on node %s: is its plugin running there?", driver, node)
}
