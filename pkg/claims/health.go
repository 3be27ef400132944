package claims

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// healthFields remembers that the API server drops allocatedResourcesStatus,
// since its feature gate ResourceHealthStatus is off.
type healthFields struct {
	dropped atomic.Bool
}

// showHealth shows the health of devices in the Pod's containers
// (KEP-4680, Manager.UpdateAllocatedResourcesStatus in pkg/kubelet/cm/dra). KWOK
// and its Stages write whole lists of container statuses without it, so it is
// checked at every change of the Pod.
func (p *Preparer) showHealth(ctx context.Context, a *attempt) error {
	if p.health.dropped.Load() || a.pod.Status.Phase != corev1.PodRunning || !a.showsHealth() {
		return nil
	}
	want, err := p.healthOf(a)
	if err != nil || want == nil {
		return nil //nolint:nilerr // templates that cannot be rendered now are reported on the node, and refused ones on themselves
	}
	patch, err := healthPatch(a.pod, want)
	if err != nil || patch == nil {
		return err
	}
	err = p.patchPod(ctx, a, "health", types.JSONPatchType, patch)
	if apierrors.IsInvalid(err) {
		klog.FromContext(ctx).V(2).Info("The containers of the pod have changed", "pod", a.key, "err", err)
		return nil // the change comes as an event
	}
	if err == nil && len(a.pod.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(a.pod.Status.ContainerStatuses, hasResources) {
		p.health.dropped.Store(true)
		klog.FromContext(ctx).Info("The API server does not keep allocatedResourcesStatus of Pods: its feature gate ResourceHealthStatus is off")
	}
	return err
}

// showsHealth reports whether Pods may have any health to show: with minimal status
// only where a driver reports it.
func (a *attempt) showsHealth() bool {
	return a.set.Faithful || slices.ContainsFunc(a.set.Templates, func(t *devices.Template) bool { return t.ReportsHealth })
}

func hasResources(status corev1.ContainerStatus) bool {
	return len(status.AllocatedResourcesStatus) > 0
}

// healthOf maps containers to what they are to show, or returns nil where nothing
// is to be shown: with minimal status, unless a driver reports health.
func (p *Preparer) healthOf(a *attempt) (map[string][]corev1.ResourceStatus, error) {
	h := healthReport{a: a, claims: map[string]*resourcev1.ResourceClaim{}, show: a.set.Faithful}
	for _, claim := range podClaims(a.pod) {
		name, _, err := resourceclaim.Name(a.pod, &claim)
		if err != nil || name == nil {
			continue
		}
		object, err := p.claim(types.NamespacedName{Namespace: a.pod.Namespace, Name: *name})
		if err == nil && object.Status.Allocation != nil {
			h.claims[claim.Name] = object
		}
	}
	all := map[string][]corev1.ResourceStatus{}
	for i := range a.pod.Spec.Containers {
		container := &a.pod.Spec.Containers[i]
		statuses, err := h.container(container)
		if err != nil {
			return nil, err
		}
		if len(statuses) > 0 {
			all[container.Name] = statuses
		}
	}
	if !h.show {
		return nil, nil
	}
	return all, nil
}

// healthReport is made for one Pod.
type healthReport struct {
	a *attempt
	// claims are the Pod's claims by their names in the Pod.
	claims map[string]*resourcev1.ResourceClaim
	show   bool
}

// container lists the health of the claims that a container names. The claim
// for extended resources it does not name, and the kubelet does not show it.
func (h *healthReport) container(container *corev1.Container) ([]corev1.ResourceStatus, error) {
	var statuses []corev1.ResourceStatus
	for _, named := range container.Resources.Claims {
		claim := h.claims[named.Name]
		if claim == nil {
			continue
		}
		status := corev1.ResourceStatus{Name: corev1.ResourceName("claim:" + named.Name)}
		if named.Request != "" {
			status.Name += corev1.ResourceName("/" + named.Request)
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if !isFor(result, named.Request) {
				continue
			}
			if err := h.add(&status, claim, result); err != nil {
				return nil, err
			}
		}
		if len(status.Resources) > 0 {
			statuses = append(statuses, status)
		}
	}
	return statuses, nil
}

// isFor reports whether a device is for a request, or for any where none is named.
func isFor(result *resourcev1.DeviceRequestAllocationResult, request string) bool {
	return request == "" || resourceclaim.BaseRequestRef(result.Request) == resourceclaim.BaseRequestRef(request)
}

func (h *healthReport) add(status *corev1.ResourceStatus, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error {
	if err := h.a.unsettled(result); err != nil {
		return err
	}
	if !h.a.set.Names(result.Driver) {
		return nil
	}
	template, err := h.a.lookup.Template(result)
	if err != nil {
		return err
	}
	id, err := h.resourceID(claim, result, template)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(status.Resources, func(r corev1.ResourceHealth) bool { return r.ResourceID == id }) {
		return nil
	}
	health, err := h.health(result, template)
	if err != nil {
		return err
	}
	status.Resources = append(status.Resources, corev1.ResourceHealth{ResourceID: id, Health: health})
	return nil
}

// health is what the kubelet would know: nothing of a driver that does not report
// health, or whose plugin is down.
func (h *healthReport) health(result *resourcev1.DeviceRequestAllocationResult, template *devices.Template) (corev1.ResourceHealthStatus, error) {
	h.show = h.show || template.ReportsHealth
	if !template.ReportsHealth || pluginOf(h.a.node) != pluginUp {
		return corev1.ResourceHealthStatusUnknown, nil
	}
	device, err := h.a.lookup.Device(result)
	if err != nil {
		return "", err
	}
	if devices.Healthy(device) {
		return corev1.ResourceHealthStatusHealthy, nil
	}
	return corev1.ResourceHealthStatusUnhealthy, nil
}

// resourceID is the first CDI device id that the driver gives, or else the
// device's full name.
func (h *healthReport) resourceID(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, template *devices.Template) (corev1.ResourceID, error) {
	report, err := source{lookup: h.a.lookup, pods: objectsOf([]*corev1.Pod{h.a.pod})}.render(claim, result, template)
	if err != nil {
		return "", err
	}
	if len(report.CDIDeviceIDs) > 0 {
		return corev1.ResourceID(report.CDIDeviceIDs[0]), nil
	}
	return corev1.ResourceID(result.Driver + "/" + result.Pool + "/" + result.Device), nil
}

// patchOperation is an operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Operation string `json:"op"`
	Path      string `json:"path"`
	Value     any    `json:"value"`
}

// healthPatch makes a JSON patch, or none where nothing is to change. The list
// of container statuses is atomic, so a merge would replace it; the tests keep
// the patch from another Pod and another container.
func healthPatch(pod *corev1.Pod, want map[string][]corev1.ResourceStatus) ([]byte, error) {
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
		return nil, fmt.Errorf("encode health of the devices of pod %s: %w", keyOf(pod), err)
	}
	return encoded, nil
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
