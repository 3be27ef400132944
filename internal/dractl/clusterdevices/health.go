package clusterdevices

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// PodClaimOf is the name that a Pod gives to a claim.
func PodClaimOf(pod *corev1.Pod, claim *resourcev1.ResourceClaim) string {
	for _, podClaim := range facts.PodClaims(pod) {
		if name, _, err := resourceclaim.Name(pod, &podClaim); err == nil && name != nil && *name == claim.Name {
			return podClaim.Name
		}
	}
	return ""
}

// UnhealthyMessage is what a kubelet says of a device that it reports as unhealthy in the status of a container, or "".
func UnhealthyMessage(pod *corev1.Pod, podClaim string, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) string {
	for i := range pod.Status.ContainerStatuses {
		for j := range pod.Status.ContainerStatuses[i].AllocatedResourcesStatus {
			found := unhealthyIn(&pod.Status.ContainerStatuses[i].AllocatedResourcesStatus[j], podClaim, claim, result)
			if found == nil {
				continue
			}
			if found.Message == nil || *found.Message == "" {
				return "the kubelet reports the device as Unhealthy"
			}
			return *found.Message
		}
	}
	return ""
}

// unhealthyIn returns what a kubelet reports of an unhealthy device, or nil. The kubelet names a device by its first CDI id, if
// it has one: then only the single device of a request is known.
func unhealthyIn(allocated *corev1.ResourceStatus, podClaim string, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) *corev1.ResourceHealth {
	request, _, _ := strings.Cut(result.Request, "/")
	ofClaim, ofRequest, hasRequest := strings.Cut(strings.TrimPrefix(string(allocated.Name), "claim:"), "/")
	if ofClaim != podClaim || hasRequest && ofRequest != request {
		return nil
	}
	isSingle := countDevices(claim, request) == 1 && len(allocated.Resources) == 1
	isOnly := isSingle && (hasRequest || len(claim.Status.Allocation.Devices.Results) == 1)
	for i := range allocated.Resources {
		health := &allocated.Resources[i]
		isNamed := string(health.ResourceID) == result.Driver+"/"+result.Pool+"/"+result.Device
		if health.Health == corev1.ResourceHealthStatusUnhealthy && (isNamed || isOnly) {
			return health
		}
	}
	return nil
}

func countDevices(claim *resourcev1.ResourceClaim, request string) int {
	count := 0
	for i := range claim.Status.Allocation.Devices.Results {
		if of, _, _ := strings.Cut(claim.Status.Allocation.Devices.Results[i].Request, "/"); of == request {
			count++
		}
	}
	return count
}
