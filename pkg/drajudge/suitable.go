package drajudge

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// onePod is what a Pod takes of the number of Pods that a node has room for.
var onePod = resource.MustParse("1")

// hasOtherDemands reports whether a Pod wants more of its place than the judge understands. Such a Pod is not judged.
func hasOtherDemands(pod *corev1.Pod) bool {
	spec := &pod.Spec
	if affinity := spec.Affinity; affinity != nil {
		if affinity.PodAffinity != nil && len(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 || keepsPodsAway(pod) {
			return true
		}
	}
	return spec.SchedulingGroup != nil ||
		slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule }) ||
		slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil
		}) ||
		slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
		})
}

// keepsPodsAway reports whether a Pod has required anti-affinity.
func keepsPodsAway(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	return affinity != nil && affinity.PodAntiAffinity != nil && len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// room is what Pods leave of nodes.
type room struct {
	left map[string]corev1.ResourceList
	// nominated are the Pods that wait for a node with others' resources.
	nominated map[string][]types.UID
	// isUnclear says that Pods keep others away from nodes, which the judge does not understand.
	isUnclear bool
}

// measureRoom adds up what Pods have.
func measureRoom(nodes map[string]*corev1.Node, pods map[key]*corev1.Pod) *room {
	r := &room{left: map[string]corev1.ResourceList{}, nominated: map[string][]types.UID{}}
	for name, node := range nodes {
		r.left[name] = corev1.ResourceList{}
		maps.Copy(r.left[name], node.Status.Allocatable)
	}
	for _, pod := range pods {
		if hasEnded(pod) {
			continue
		}
		r.isUnclear = r.isUnclear || keepsPodsAway(pod)
		if pod.Spec.NodeName == "" {
			r.nominated[pod.Status.NominatedNodeName] = append(r.nominated[pod.Status.NominatedNodeName], pod.UID)
		} else if left := r.left[pod.Spec.NodeName]; left != nil {
			subtractRequests(left, pod)
		}
	}
	return r
}

// suitsPod reports whether a node certainly suits a Pod, whatever devices there are. It errs on the side of no. Resources that
// devices provide are not looked for on the node.
func (r *room) suitsPod(node *corev1.Node, pod *corev1.Pod, provided map[corev1.ResourceName]bool) bool {
	if node.DeletionTimestamp != nil || !toleratesNode(pod, node) || !matchesNodeAffinity(pod, node) {
		return false
	}
	if slices.ContainsFunc(r.nominated[node.Name], func(uid types.UID) bool { return uid != pod.UID }) {
		return false
	}
	left := maps.Clone(r.left[node.Name])
	subtractRequests(left, pod)
	for name, quantity := range left {
		before := r.left[node.Name][name]
		if quantity.Sign() < 0 && quantity.Cmp(before) < 0 && !provided[name] { // what others have too much of does not matter
			return false
		}
	}
	return true
}

// subtractRequests takes from a node at least what a Pod needs: init containers count as if they ran all the time.
func subtractRequests(left corev1.ResourceList, pod *corev1.Pod) {
	subtract := func(requests corev1.ResourceList) {
		for name, quantity := range requests {
			rest := left[name].DeepCopy()
			rest.Sub(quantity)
			left[name] = rest
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			subtract(resources.Requests)
			for name, quantity := range resources.Limits { // a limit without a request is the request
				if _, isRequested := resources.Requests[name]; !isRequested {
					subtract(corev1.ResourceList{name: quantity})
				}
			}
		}
	}
	if pod.Spec.Resources != nil {
		subtract(pod.Spec.Resources.Requests)
	}
	subtract(pod.Spec.Overhead)
	subtract(corev1.ResourceList{corev1.ResourcePods: onePod})
}

// toleratesNode reports whether a Pod tolerates the taints of a node and may be on a cordoned one.
func toleratesNode(pod *corev1.Pod, node *corev1.Node) bool {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clip(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return !slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
				(t.Operator == corev1.TolerationOpExists || (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value)
		})
	})
}

func matchesNodeAffinity(pod *corev1.Pod, node *corev1.Node) bool {
	for name, value := range pod.Spec.NodeSelector {
		if node.Labels[name] != value {
			return false
		}
	}
	affinity := pod.Spec.Affinity
	return affinity == nil || affinity.NodeAffinity == nil || admitsNode(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, node)
}
