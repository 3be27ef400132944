package why

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// describeUnhealthy names the devices of a Pod that its kubelet reports as unhealthy, or that their
// driver reports as not ready.
func (o *Objects) describeUnhealthy(pod *corev1.Pod) []string {
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
	for _, claim := range o.claimsOf(pod) {
		for i := range claim.Status.Devices {
			entry := &claim.Status.Devices[i]
			if ready := meta.FindStatusCondition(entry.Conditions, "Ready"); ready != nil && ready.Status == metav1.ConditionFalse {
				lines = append(lines, fmt.Sprintf("device %s/%s/%s of claim %s is not ready: %s",
					entry.Driver, entry.Pool, entry.Device, claim.Name, joinNonEmpty(": ", ready.Reason, ready.Message)))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// describeEvent says what an event tells, and when.
func describeEvent(event *corev1.Event) string {
	return fmt.Sprintf("%s at %s", joinNonEmpty(": ", event.Reason, event.Message), formatTime(facts.LastSeen(event)))
}
