package drajudge

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// preemption is what a scheduler has taken from a Pod for a Pod of higher priority.
type preemption struct {
	victim *corev1.Pod
	// preemptors are the Pods that were nominated for the node since, by UID, while none of higher priority than the victim was
	// bound there.
	preemptors map[types.UID]bool
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// preemptions are those of each node.
type preemptions map[string][]*preemption

// observePod records that a Pod was preempted, that one waits for the place, or that one got it.
func (n preemptions) observePod(pod, old *corev1.Pod, pods map[key]*corev1.Pod) {
	if isPreempted(pod) && pod.Spec.NodeName != "" && (old == nil || !isPreempted(old)) {
		p := &preemption{victim: pod, preemptors: map[types.UID]bool{}}
		n[pod.Spec.NodeName] = append(n[pod.Spec.NodeName], p)
		for _, other := range pods {
			p.addPreemptor(other)
		}
	}
	if pod.Spec.NodeName == "" {
		for _, p := range n[pod.Status.NominatedNodeName] {
			p.addPreemptor(pod)
		}
		return
	}
	if old == nil || old.Spec.NodeName != "" {
		return
	}
	left := slices.DeleteFunc(n[pod.Spec.NodeName], func(p *preemption) bool { return priorityOf(pod) > priorityOf(p.victim) })
	if len(left) == 0 {
		delete(n, pod.Spec.NodeName)
	} else {
		n[pod.Spec.NodeName] = left
	}
}

func isPreempted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
	})
}

// addPreemptor records a Pod if the victim had to go for it.
func (p *preemption) addPreemptor(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == p.victim.Spec.NodeName && priorityOf(pod) > priorityOf(p.victim) {
		p.preemptors[pod.UID] = true
	}
}

// changesPlaces reports whether a write of the supply changes what fits where. The heartbeat of a node does not.
func changesPlaces(old, object runtime.Object) bool {
	before, wasNode := old.(*corev1.Node)
	after, isNode := object.(*corev1.Node)
	if !wasNode || !isNode {
		return true
	}
	return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Labels, after.Labels) ||
		!apiequality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
}

// checkPreemptions checks that no Pod waits for which others were preempted. Drivers may take their time.
func (r *restCheck) checkPreemptions() []Violation {
	var violations []Violation
	for _, id := range sortedKeys(r.pods) {
		pod := r.pods[id]
		if !isWaiting(pod) || len(pod.Spec.ResourceClaims) == 0 && len(r.supply.deviceResourcesOf(pod)) == 0 || r.awaitsConditions(pod) {
			continue
		}
		var victims []*preemption
		for _, ofNode := range r.preemptions {
			for _, p := range ofNode {
				if p.preemptors[pod.UID] {
					victims = append(victims, p)
				}
			}
		}
		slices.SortFunc(victims, func(a, b *preemption) int { return cmp.Compare(a.victim.Name, b.victim.Name) })
		for _, p := range victims {
			violations = append(violations, r.violation(preemptedInVain, []Object{nameObject("Pod", p.victim), nameObject("Pod", pod)},
				"Pod %s was preempted on node %s, and Pod %s, which was nominated for the node, still waits", p.victim.Name, p.victim.Spec.NodeName, pod.Name))
		}
	}
	return violations
}
