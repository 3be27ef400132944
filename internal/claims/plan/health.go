package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// healthPatch shows the health of devices in the statuses of the Pod's containers (KEP-4680,
// Manager.UpdateAllocatedResourcesStatus in pkg/kubelet/cm/dra). KWOK and its Stages write whole lists of
// container statuses without it, so each change of the Pod may need the patch again. With minimal status
// only health that a driver reports is shown.
func (v *PodView) healthPatch() *Patch {
	if v.HealthDropped || v.Pod.Status.Phase != corev1.PodRunning || !v.Set.Faithful && !v.Driver.ReportsHealth() {
		return nil
	}
	want, err := v.healthByContainer()
	if err != nil || want == nil { // templates that cannot be rendered now are reported on the node, and refused ones on themselves
		return nil
	}
	return newHealthPatch(v.Pod, want)
}

// healthByContainer maps containers to the health of the claims that they name. It is nil if nothing is
// shown. No container names the claim for extended resources, and the kubelet does not show its health.
func (v *PodView) healthByContainer() (map[string][]corev1.ResourceStatus, error) {
	claims, all, isShown := v.claimsByName(), map[string][]corev1.ResourceStatus{}, v.Set.Faithful
	for _, container := range v.Pod.Spec.Containers {
		for _, named := range container.Resources.Claims {
			resources, reported, err := v.requestHealth(claims[named.Name], named.Request)
			if err != nil {
				return nil, err
			}
			isShown = isShown || reported
			if len(resources) == 0 {
				continue
			}
			status := corev1.ResourceStatus{Name: corev1.ResourceName("claim:" + named.Name), Resources: resources}
			if named.Request != "" {
				status.Name += corev1.ResourceName("/" + named.Request)
			}
			all[container.Name] = append(all[container.Name], status)
		}
	}
	if !isShown {
		return nil, nil
	}
	return all, nil
}

// claimsByName maps the Pod's own names of its allocated claims to the claims.
func (v *PodView) claimsByName() map[string]*resourcev1.ResourceClaim {
	claims := map[string]*resourcev1.ResourceClaim{}
	for _, podClaim := range v.Pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(v.Pod, &podClaim)
		if err != nil || name == nil {
			continue
		}
		if claim := v.Claims.Known[*name]; claim != nil && claim.Status.Allocation != nil {
			claims[podClaim.Name] = claim
		}
	}
	return claims
}

// requestHealth lists the health of the devices of a request, or of all requests for "". Reported says
// that it includes health that a driver has reported.
func (v *PodView) requestHealth(claim *resourcev1.ResourceClaim, request string) (all []corev1.ResourceHealth, reported bool, err error) {
	if claim == nil {
		return nil, false, nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if request != "" && resourceclaim.BaseRequestRef(result.Request) != resourceclaim.BaseRequestRef(request) {
			continue
		}
		health, err := v.Driver.Health(v.Pod, claim, &result)
		if err != nil {
			return nil, false, err
		}
		if health == nil {
			continue
		}
		reported = reported || health.Reported
		if !slices.ContainsFunc(all, func(h corev1.ResourceHealth) bool { return h.ResourceID == health.ResourceID }) {
			all = append(all, health.ResourceHealth)
		}
	}
	return all, reported, nil
}

// patchOperation is an operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Operation string `json:"op"`
	Path      string `json:"path"`
	Value     any    `json:"value"`
}

// newHealthPatch makes a JSON patch, or nil if nothing changes. The list of container statuses is atomic,
// so a merge patch would replace it. The tests in the patch protect another Pod of the name, and another
// container.
func newHealthPatch(pod *corev1.Pod, want map[string][]corev1.ResourceStatus) *Patch {
	operations := []patchOperation{{"test", "/metadata/uid", pod.UID}}
	for i, status := range pod.Status.ContainerStatuses {
		have, merged := mergeResources(status.AllocatedResourcesStatus, nil), mergeResources(status.AllocatedResourcesStatus, want[status.Name])
		if apiequality.Semantic.DeepEqual(merged, have) {
			continue
		}
		path := fmt.Sprintf("/status/containerStatuses/%d", i)
		operations = append(operations,
			patchOperation{"test", path + "/name", status.Name},
			patchOperation{"add", path + "/allocatedResourcesStatus", merged})
	}
	if len(operations) == 1 {
		return nil
	}
	return &Patch{PatchHealth, types.JSONPatchType, operations}
}

// mergeResources replaces the health of the wanted resources and keeps all other entries, sorted by name.
func mergeResources(have, want []corev1.ResourceStatus) []corev1.ResourceStatus {
	merged := slices.Clone(want)
	for _, status := range have {
		if !slices.ContainsFunc(want, func(w corev1.ResourceStatus) bool { return w.Name == status.Name }) {
			merged = append(merged, status)
		}
	}
	slices.SortFunc(merged, func(a, b corev1.ResourceStatus) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}
