package why

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
)

// describeUnhealthy names the devices of a Pod that its kubelet reports as unhealthy, or that their
// driver reports as not ready.
func (o *Objects) describeUnhealthy(pod *corev1.Pod) []string {
	var lines []string
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, status := range container.AllocatedResourcesStatus {
			for i := range status.Resources {
				if status.Resources[i].Health == corev1.ResourceHealthStatusUnhealthy {
					lines = append(lines, describeHealth(container.Name, &status.Resources[i]))
				}
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

// describeHealth says that a device of a container is unhealthy.
func describeHealth(container string, resource *corev1.ResourceHealth) string {
	line := fmt.Sprintf("device %s of container %s is unhealthy", resource.ResourceID, container)
	if resource.Message != nil {
		return joinNonEmpty(": ", line, *resource.Message)
	}
	return line
}

// describeEvent says what an event tells, and when.
func describeEvent(event *corev1.Event) string {
	return fmt.Sprintf("%s at %s", joinNonEmpty(": ", event.Reason, event.Message), formatTime(history.LastSeen(event)))
}
