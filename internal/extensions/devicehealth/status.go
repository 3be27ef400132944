package devicehealth

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Shown implements plan.Health by what the drivers of a view say. With minimal status only health that a
// driver reports is shown.
type Shown struct{}

// Patch implements plan.Health. KWOK and its Stages write whole lists of container statuses without health, so each change
// of a Pod may need the patch again.
func (s Shown) Patch(v *plan.PodView) *plan.Patch {
	if v.Pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	return newPatch(v.Pod, s.byContainer(v))
}

// ContainerStatuses implements plan.Health. If the Pod shows that its containers wait, they show the health of their devices
// too, which the Stages keep: so it takes no write of its own when the containers run.
func (s Shown) ContainerStatuses(v *plan.PodView) (statuses []corev1.ContainerStatus) {
	if len(v.Pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	health := s.byContainer(v)
	if len(health) == 0 {
		return nil
	}
	for _, container := range v.Pod.Status.ContainerStatuses {
		container.AllocatedResourcesStatus = mergeResources(container.AllocatedResourcesStatus, health[container.Name])
		statuses = append(statuses, container)
	}
	return statuses
}

// byContainer is the health of the devices of each container that is to be shown.
func (Shown) byContainer(v *plan.PodView) map[string][]corev1.ResourceStatus {
	isReported := slices.ContainsFunc(v.Set.Templates, func(t *devices.Template) bool { return t.Health == v1alpha1.HealthReport })
	if reporter, isReporter := v.Driver.(Reporter); isReporter {
		isReported = isReported || reporter.ReportsHealth()
	}
	if !v.Set.Faithful && !isReported {
		return nil
	}
	// No container names the claim for extended resources, and the kubelet does not show its health.
	all, isShown := map[string][]corev1.ResourceStatus{}, v.Set.Faithful
	for _, container := range v.Pod.Spec.Containers {
		for _, named := range container.Resources.Claims {
			resources, reported, err := requestHealth(v, named)
			if err != nil { // templates that cannot be rendered now are reported on the node, and refused ones on themselves
				return nil
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
		return nil
	}
	return all
}

// requestHealth lists the health of the devices of an allocated claim that a container names: those of one request, or all.
// Reported says that it includes health that a driver has reported.
func requestHealth(v *plan.PodView, named corev1.ResourceClaim) (all []corev1.ResourceHealth, reported bool, err error) {
	var claim *resourcev1.ResourceClaim
	if i := slices.IndexFunc(v.Pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == named.Name }); i >= 0 {
		if name, _, err := resourceclaim.Name(v.Pod, &v.Pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			claim = v.Claims.Known[*name]
		}
	}
	if claim == nil || claim.Status.Allocation == nil {
		return nil, false, nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if named.Request != "" && resourceclaim.BaseRequestRef(result.Request) != resourceclaim.BaseRequestRef(named.Request) {
			continue
		}
		health, err := Of(v.Driver, v.Pod, claim, &result)
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

// newPatch makes a JSON patch, or nil if nothing changes. The list of container statuses is atomic, so a merge patch
// would replace it. The tests in the patch protect another Pod of the name, and another container.
func newPatch(pod *corev1.Pod, want map[string][]corev1.ResourceStatus) *plan.Patch {
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
	return &plan.Patch{Operation: plan.PatchHealth, Type: types.JSONPatchType, Content: operations}
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
