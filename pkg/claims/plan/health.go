package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// healthPatch shows the health of devices in the Pod's containers (KEP-4680,
// Manager.UpdateAllocatedResourcesStatus in pkg/kubelet/cm/dra). KWOK and its Stages
// write whole lists of container statuses without it, so it is made at every change of
// the Pod. With minimal status only health that a driver reports is shown.
func (v *PodView) healthPatch() (*Patch, error) {
	if v.HealthDropped || v.Pod.Status.Phase != corev1.PodRunning || !v.Set.Faithful && !v.Driver.ReportsHealth() {
		return nil, nil
	}
	want, err := v.health()
	if err != nil || want == nil {
		return nil, nil //nolint:nilerr // templates that cannot be rendered now are reported on the node, and refused ones on themselves
	}
	return newHealthPatch(v.Pod, want)
}

// health maps containers to what they are to show, or is nil where nothing is shown.
func (v *PodView) health() (map[string][]corev1.ResourceStatus, error) {
	r := healthReport{view: v, claims: v.claimsByName(), show: v.Set.Faithful}
	all := map[string][]corev1.ResourceStatus{}
	for i := range v.Pod.Spec.Containers {
		container := &v.Pod.Spec.Containers[i]
		statuses, err := r.container(container)
		if err != nil {
			return nil, err
		}
		if len(statuses) > 0 {
			all[container.Name] = statuses
		}
	}
	if !r.show {
		return nil, nil
	}
	return all, nil
}

// claimsByName are the allocated claims of the Pod by their names in the Pod.
func (v *PodView) claimsByName() map[string]*resourcev1.ResourceClaim {
	claims := map[string]*resourcev1.ResourceClaim{}
	for _, podClaim := range podClaims(v.Pod) {
		name, _, err := resourceclaim.Name(v.Pod, &podClaim)
		if err != nil || name == nil {
			continue
		}
		if claim, err := v.Known(*name); err == nil && claim.Status.Allocation != nil {
			claims[podClaim.Name] = claim
		}
	}
	return claims
}

// healthReport is made for one Pod.
type healthReport struct {
	view   *PodView
	claims map[string]*resourcev1.ResourceClaim
	show   bool
}

// container lists the health of the claims that a container names. The claim
// for extended resources it does not name, and the kubelet does not show it.
func (r *healthReport) container(container *corev1.Container) ([]corev1.ResourceStatus, error) {
	var statuses []corev1.ResourceStatus
	for _, named := range container.Resources.Claims {
		claim := r.claims[named.Name]
		if claim == nil {
			continue
		}
		resources, err := r.devices(claim, named.Request)
		if err != nil {
			return nil, err
		}
		if len(resources) == 0 {
			continue
		}
		status := corev1.ResourceStatus{Name: corev1.ResourceName("claim:" + named.Name), Resources: resources}
		if named.Request != "" {
			status.Name += corev1.ResourceName("/" + named.Request)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

// devices lists the health of the devices of a request, or of all.
func (r *healthReport) devices(claim *resourcev1.ResourceClaim, request string) ([]corev1.ResourceHealth, error) {
	var all []corev1.ResourceHealth
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if !isFor(result, request) {
			continue
		}
		health, err := r.view.Driver.Health(r.view.Pod, claim, result)
		if err != nil {
			return nil, err
		}
		if health == nil {
			continue
		}
		r.show = r.show || health.Reported
		if !slices.ContainsFunc(all, func(h corev1.ResourceHealth) bool { return h.ResourceID == health.ResourceID }) {
			all = append(all, health.ResourceHealth)
		}
	}
	return all, nil
}

// isFor reports whether a device is for a request, or for any where none is named.
func isFor(result *resourcev1.DeviceRequestAllocationResult, request string) bool {
	return request == "" || resourceclaim.BaseRequestRef(result.Request) == resourceclaim.BaseRequestRef(request)
}

// patchOperation is an operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Operation string `json:"op"`
	Path      string `json:"path"`
	Value     any    `json:"value"`
}

// newHealthPatch makes a JSON patch, or none where nothing is to change. The list
// of container statuses is atomic, so a merge would replace it; the tests keep
// the patch from another Pod and another container.
func newHealthPatch(pod *corev1.Pod, want map[string][]corev1.ResourceStatus) (*Patch, error) {
	operations := []patchOperation{{"test", "/metadata/uid", pod.UID}}
	for i, status := range pod.Status.ContainerStatuses {
		merged := mergeResources(status.AllocatedResourcesStatus, want[status.Name])
		if apiequality.Semantic.DeepEqual(merged, sortResources(status.AllocatedResourcesStatus)) {
			continue
		}
		path := fmt.Sprintf("/status/containerStatuses/%d", i)
		operations = append(operations,
			patchOperation{"test", path + "/name", status.Name},
			patchOperation{"add", path + "/allocatedResourcesStatus", merged})
	}
	if len(operations) == 1 {
		return nil, nil
	}
	encoded, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode health of the devices of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return &Patch{PatchHealth, types.JSONPatchType, encoded}, nil
}

// mergeResources replaces the health of the wanted resources, and keeps all other
// entries.
func mergeResources(have, want []corev1.ResourceStatus) []corev1.ResourceStatus {
	merged := slices.Clone(want)
	for _, status := range have {
		if !slices.ContainsFunc(want, func(w corev1.ResourceStatus) bool { return w.Name == status.Name }) {
			merged = append(merged, status)
		}
	}
	return sortResources(merged)
}

func sortResources(statuses []corev1.ResourceStatus) []corev1.ResourceStatus {
	return slices.SortedFunc(slices.Values(statuses), func(a, b corev1.ResourceStatus) int { return cmp.Compare(a.Name, b.Name) })
}
