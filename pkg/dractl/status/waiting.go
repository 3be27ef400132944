package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/natural"
)

// Waiting is a Pod on a node whose claims are not prepared yet.
type Waiting struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	Reason    string `json:"reason"`
}

// waiting are the Pods that wait for their claims to be prepared, and why. A Pod
// whose claims have no devices may wait for any driver.
func (w *world) waiting(f *filter) []Waiting {
	claims := map[string]*resourcev1.ResourceClaim{}
	for _, claim := range w.claims {
		claims[claim.Namespace+"/"+claim.Name] = claim
	}
	all := []Waiting{}
	for _, pod := range w.pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" || hasStarted(pod) {
			continue
		}
		if !f.choosesNode(pod.Spec.NodeName) || !mayWaitFor(pod, claims, f) {
			continue
		}
		if reason := w.unprepared(pod, claims); reason != "" {
			all = append(all, Waiting{pod.Namespace, pod.Name, pod.Spec.NodeName, reason})
		}
	}
	slices.SortFunc(all, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), natural.Compare(a.Pod, b.Pod))
	})
	return all
}

// mayWaitFor reports whether a Pod may wait for one of the drivers of the filter.
func mayWaitFor(pod *corev1.Pod, claims map[string]*resourcev1.ResourceClaim, f *filter) bool {
	return slices.ContainsFunc(claimNames(pod), func(name string) bool {
		claim := claims[pod.Namespace+"/"+name]
		if claim == nil || claim.Status.Allocation == nil {
			return true
		}
		return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
			return f.chooses(pod.Spec.NodeName, result.Driver)
		})
	})
}

// unprepared says what a Pod waits for. It is empty for a Pod without claims.
func (w *world) unprepared(pod *corev1.Pod, claims map[string]*resourcev1.ResourceClaim) string {
	var missing, used []string
	for _, name := range claimNames(pod) {
		used = append(used, name)
		switch claim := claims[pod.Namespace+"/"+name]; {
		case claim == nil:
			missing = append(missing, fmt.Sprintf("claim %s does not exist", name))
		case claim.Status.Allocation == nil:
			missing = append(missing, fmt.Sprintf("claim %s has no devices", name))
		case !resourceclaim.IsReservedForPod(pod, claim, true):
			missing = append(missing, fmt.Sprintf("claim %s is not reserved for the Pod", name))
		}
	}
	if len(used) == 0 {
		return ""
	}
	if message := w.failure(pod); message != "" {
		missing = append(missing, message)
	}
	if len(missing) == 0 {
		return "not prepared yet: " + strings.Join(used, ", ")
	}
	return strings.Join(missing, "; ")
}

// failure is the newest message of the kubelet about the Pod.
func (w *world) failure(pod *corev1.Pod) string {
	var newest *corev1.Event
	for _, event := range w.failures {
		if event.InvolvedObject.UID == pod.UID && (newest == nil || timeOf(event).After(timeOf(newest))) {
			newest = event
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Message
}

// claimNames are the claims of a Pod that have been made.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names = append(names, *name)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		names = append(names, extended.ResourceClaimName)
	}
	return names
}
