package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// notSelected is why a node refuses a Pod that selects others.
const notSelected = "the Pod's nodeSelector or node affinity does not match"

// describeUnselected names the parts of the Pod's nodeSelector and node affinity that no node
// matches, if there are any.
func (s *Scheduler) describeUnselected(pod *corev1.Pod) string {
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		value := pod.Spec.NodeSelector[key]
		if !hasNode(s.nodes, func(node *corev1.Node) bool { return node.Labels[key] == value }) {
			missing = append(missing, "label "+key+"="+value)
		}
	}
	for _, requirement := range soleRequirements(pod) {
		selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}},
		}})
		if err == nil && !hasNode(s.nodes, selector.Match) {
			missing = append(missing, strings.TrimSuffix(fmt.Sprintf("label %s %s %s", requirement.Key, requirement.Operator, strings.Join(requirement.Values, ", ")), " "))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "no node has the " + strings.Join(missing, ", nor the ")
}

// soleRequirements returns the label requirements of a node affinity with one term, all of which a
// node must match.
func soleRequirements(pod *corev1.Pod) []corev1.NodeSelectorRequirement {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	if terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(terms) == 1 {
		return terms[0].MatchExpressions
	}
	return nil
}

func hasNode(nodes []*node, matches func(*corev1.Node) bool) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool { return matches(n.object) })
}
