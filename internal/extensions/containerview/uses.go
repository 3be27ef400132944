package containerview

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// use is a claim that a container uses, and which of its requests.
type use struct {
	claim string
	// request is empty for all requests.
	request string
}

// usesOf lists what a container uses in the kubelet's order: the claims that the Pod
// names, then that for its extended resources (GetResources in pkg/kubelet/cm/dra).
func usesOf(pod *corev1.Pod, container *corev1.Container) ([]use, error) {
	var uses []use
	for i := range pod.Spec.ResourceClaims {
		podClaim := &pod.Spec.ResourceClaims[i]
		for _, named := range container.Resources.Claims {
			if named.Name != podClaim.Name {
				continue
			}
			name, _, err := resourceclaim.Name(pod, podClaim)
			if err != nil {
				return nil, err
			}
			if name != nil { // or none was made for the Pod, on purpose
				uses = append(uses, use{*name, named.Request})
			}
		}
	}
	return append(uses, extendedUses(pod, container)...), nil
}

// extendedUses lists what a container uses of the claim for the Pod's extended resources.
func extendedUses(pod *corev1.Pod, container *corev1.Container) (uses []use) {
	extended := pod.Status.ExtendedResourceClaimStatus
	if extended == nil {
		return nil
	}
	for _, mapping := range extended.RequestMappings {
		amount := container.Resources.Requests[corev1.ResourceName(mapping.ResourceName)]
		if mapping.ContainerName == container.Name && !amount.IsZero() {
			uses = append(uses, use{extended.ResourceClaimName, mapping.RequestName})
		}
	}
	return uses
}

// allocatedResults returns the allocated devices that are used, also those of alternatives and those
// that drivers are not asked to prepare.
func (u use) allocatedResults(claims map[string]*resourcev1.ResourceClaim) ([]*resourcev1.DeviceRequestAllocationResult, error) {
	claim := claims[u.claim]
	switch {
	case claim == nil:
		return nil, fmt.Errorf("ResourceClaim %s: there is none of that name", u.claim)
	case claim.Status.Allocation == nil:
		return nil, fmt.Errorf("ResourceClaim %s: not allocated", u.claim)
	}
	var used []*resourcev1.DeviceRequestAllocationResult
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if u.request == "" || resourceclaim.BaseRequestRef(result.Request) == u.request || result.Request == u.request {
			used = append(used, result)
		}
	}
	return used, nil
}

// pathDepth counts the folders of a path.
func pathDepth(name string) int {
	return strings.Count(path.Clean(name), "/")
}
