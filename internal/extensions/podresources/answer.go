package podresources

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
)

// Prepared returns what the drivers of the node have prepared of a claim of a Pod, or nil if the claim is not prepared.
type Prepared func(pod *corev1.Pod, claim string) *claiminfo.Info

// resourcesOf answers for one Pod as the kubelet does (getPodResources and getContainerResources in
// pkg/kubelet/apis/podresources/server_v1.go): init containers that are no sidecars are left out.
func resourcesOf(pod *corev1.Pod, prepared Prepared) *podresourcesv1.PodResources {
	answer := &podresourcesv1.PodResources{Name: pod.Name, Namespace: pod.Namespace}
	for i := range pod.Spec.InitContainers {
		if container := &pod.Spec.InitContainers[i]; container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			answer.Containers = append(answer.Containers, containerResources(pod, container, prepared))
		}
	}
	for i := range pod.Spec.Containers {
		answer.Containers = append(answer.Containers, containerResources(pod, &pod.Spec.Containers[i], prepared))
	}
	return answer
}

// containerResources lists the claims of a container, in the order of the Pod's, and then the one of its extended resources
// (GetContainerClaimInfos in pkg/kubelet/cm/dra/manager.go). While one of them is not prepared, the kubelet lists none.
func containerResources(pod *corev1.Pod, container *corev1.Container, prepared Prepared) *podresourcesv1.ContainerResources {
	answer, none := &podresourcesv1.ContainerResources{Name: container.Name}, &podresourcesv1.ContainerResources{Name: container.Name}
	var names []string
	for i := range pod.Spec.ResourceClaims {
		claim := &pod.Spec.ResourceClaims[i]
		if !slices.ContainsFunc(container.Resources.Claims, func(used corev1.ResourceClaim) bool { return used.Name == claim.Name }) {
			continue
		}
		name, _, err := resourceclaim.Name(pod, claim)
		switch {
		case err != nil: // the claim has not been made yet
			return none
		case name != nil:
			names = append(names, *name)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil && slices.ContainsFunc(extended.RequestMappings, func(mapping corev1.ContainerExtendedResourceRequest) bool {
		return mapping.ContainerName == container.Name
	}) {
		names = append(names, extended.ResourceClaimName)
	}
	for _, name := range names {
		info := prepared(pod, name)
		if info == nil {
			return none
		}
		answer.DynamicResources = append(answer.DynamicResources, &podresourcesv1.DynamicResource{
			ClaimName: info.ClaimName, ClaimNamespace: info.Namespace, ClaimResources: claimResources(info),
		})
	}
	return answer
}

// claimResources lists the devices of a claim, by driver. As the kubelet's do (GetDynamicResources in
// pkg/kubelet/cm/container_manager_linux.go), a device has the CDI devices of the driver's earlier ones before its own.
func claimResources(info *claiminfo.Info) []*podresourcesv1.ClaimResource {
	var resources []*podresourcesv1.ClaimResource
	for _, driver := range slices.Sorted(maps.Keys(info.DriverState)) {
		var earlier []*podresourcesv1.CDIDevice
		for _, device := range info.DriverState[driver].Devices {
			for _, id := range device.CDIDeviceIDs {
				earlier = append(earlier, &podresourcesv1.CDIDevice{Name: id})
			}
			resources = append(resources, &podresourcesv1.ClaimResource{
				CdiDevices: slices.Clone(earlier), DriverName: driver, PoolName: device.PoolName, DeviceName: device.DeviceName,
				ShareId: (*string)(device.ShareID),
			})
		}
	}
	return resources
}
