package why

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// describeUnhealthy names the devices of a Pod that its kubelet reports as unhealthy, or that their
// driver reports as not ready.
func (c *Cluster) describeUnhealthy(pod *corev1.Pod) []string {
	var lines []string
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, status := range container.AllocatedResourcesStatus {
			for _, resource := range status.Resources {
				if resource.Health != corev1.ResourceHealthStatusUnhealthy {
					continue
				}
				line := fmt.Sprintf("device %s of container %s is unhealthy", resource.ResourceID, container.Name)
				if resource.Message != nil {
					line = joinNonEmpty(": ", line, *resource.Message)
				}
				lines = append(lines, line)
			}
		}
	}
	for _, claim := range c.claimsOf(pod) {
		for i := range claim.Status.Devices {
			entry := &claim.Status.Devices[i]
			for _, condition := range entry.Conditions {
				if condition.Type == "Ready" && condition.Status == metav1.ConditionFalse {
					id := facts.EntryID(entry)
					lines = append(lines, fmt.Sprintf("device %s/%s/%s of claim %s is not ready: %s", id.Driver, id.Pool, id.Device, claim.Name,
						joinNonEmpty(": ", condition.Reason, condition.Message)))
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// describeEvent says what an event tells, and when.
func describeEvent(event *corev1.Event) string {
	return fmt.Sprintf("%s at %s", joinNonEmpty(": ", event.Reason, event.Message), formatTime(LastSeen(event)))
}
