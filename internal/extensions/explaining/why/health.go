package why

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
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
			for i := range status.Resources {
				lines = append(lines, describeHealth(container.Name, &status.Resources[i]))
			}
		}
	}
	for _, claim := range o.claimsOf(pod) {
		for i := range claim.Status.Devices {
			lines = append(lines, describeReady(claim.Name, &claim.Status.Devices[i]))
		}
	}
	slices.Sort(lines)
	return slices.DeleteFunc(slices.Compact(lines), func(line string) bool { return line == "" })
}

// describeHealth says that a device of a container is unhealthy, or returns "".
func describeHealth(container string, resource *corev1.ResourceHealth) string {
	if resource.Health != corev1.ResourceHealthStatusUnhealthy {
		return ""
	}
	line := fmt.Sprintf("device %s of container %s is unhealthy", resource.ResourceID, container)
	if resource.Message != nil {
		return joinNonEmpty(": ", line, *resource.Message)
	}
	return line
}

// describeReady says that a device of a claim is not ready, or returns "".
func describeReady(claim string, entry *resourcev1.AllocatedDeviceStatus) string {
	ready := meta.FindStatusCondition(entry.Conditions, "Ready")
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("device %s/%s/%s of claim %s is not ready: %s", entry.Driver, entry.Pool, entry.Device, claim, joinNonEmpty(": ", ready.Reason, ready.Message))
}

// describeEvent says what an event tells, and when.
func describeEvent(event *corev1.Event) string {
	return fmt.Sprintf("%s at %s", joinNonEmpty(": ", event.Reason, event.Message), formatTime(facts.LastSeen(event)))
}
