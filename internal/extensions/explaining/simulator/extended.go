package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// extendedSuffix ends the name of the claim for extended resources.
const extendedSuffix = "-extended-resources"

// extendedClaim makes the claim for the extended resources of a Pod that device classes stand for,
// or returns nil.
func (c *catalog) extendedClaim(pod *corev1.Pod) (*resourcev1.ResourceClaim, error) {
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		claim := c.claims[objectKey(pod.Namespace, status.ResourceClaimName)]
		if claim == nil {
			return nil, &Missing{Kind: "resourceclaim", Name: status.ResourceClaimName}
		}
		return claim, nil
	}
	var requests []resourcev1.DeviceRequest // those that the scheduler makes, with its names
	for _, resource := range c.extendedResources(pod) {
		requests = append(requests, containerRequests(pod, resource, c.resources.GetDeviceClass(resource).Name)...)
	}
	slices.SortFunc(requests, func(a, b resourcev1.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	if len(requests) == 0 {
		return nil, nil
	}
	name := pod.Name + extendedSuffix
	if made := c.claims[objectKey(pod.Namespace, name)]; made != nil {
		return made, nil
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: name,
			Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
	c.addOwned(pod, claim)
	return claim, nil
}

// extendedResources returns those resources of a Pod that device classes stand for, sorted by name.
func (c *catalog) extendedResources(pod *corev1.Pod) []corev1.ResourceName {
	found := map[corev1.ResourceName]bool{}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for resource, quantity := range requestsOf(&containers[i]) {
				if !quantity.IsZero() && c.resources.GetDeviceClass(resource) != nil {
					found[resource] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// containerRequests returns the requests of the containers of a Pod for one resource. An init
// container that ends shares devices with those that come after it, and one request covers what it
// needs beyond theirs.
func containerRequests(pod *corev1.Pod, resource corev1.ResourceName, class string) []resourcev1.DeviceRequest {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	lasting := make([]int64, len(containers))
	var requests []resourcev1.DeviceRequest
	for i := range containers {
		if i >= len(pod.Spec.InitContainers) || isSidecar(&containers[i]) {
			if lasting[i] = requestedAmount(&containers[i], resource); lasting[i] > 0 {
				requests = append(requests, containerRequest(i, &containers[i], resource, class, lasting[i]))
			}
		}
	}
	var passing *resourcev1.DeviceRequest
	for i := range pod.Spec.InitContainers {
		missing := requestedAmount(&containers[i], resource)
		for _, later := range lasting[i:] {
			missing -= later
		}
		if !isSidecar(&containers[i]) && missing > 0 && (passing == nil || passing.Exactly.Count < missing) {
			request := containerRequest(i, &containers[i], resource, class, missing)
			passing = &request
		}
	}
	if passing != nil {
		requests = append(requests, *passing)
	}
	return requests
}

func isSidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func requestedAmount(container *corev1.Container, resource corev1.ResourceName) int64 {
	quantity := requestsOf(container)[resource]
	return quantity.Value()
}

// requestsOf returns the resource requests of a container. Like the API server, it takes a limit
// without a request as the request.
func requestsOf(container *corev1.Container) corev1.ResourceList {
	all := maps.Clone(container.Resources.Limits)
	if all == nil {
		return container.Resources.Requests
	}
	maps.Copy(all, container.Resources.Requests)
	return all
}

func containerRequest(index int, container *corev1.Container, resource corev1.ResourceName, class string, count int64) resourcev1.DeviceRequest {
	position := slices.Index(slices.Sorted(maps.Keys(requestsOf(container))), resource)
	return resourcev1.DeviceRequest{
		Name: fmt.Sprintf("container-%d-request-%d", index, position),
		Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		},
	}
}
