package drajudge

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// admitsNode reports whether a node selector admits a node. No selector admits all.
func admitsNode(selector *corev1.NodeSelector, node *corev1.Node) bool {
	return selector == nil || slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return matchesTerm(&term, node)
	})
}

// matchesTerm reports whether a node satisfies all requirements of a term. An empty term matches nothing.
func matchesTerm(term *corev1.NodeSelectorTerm, node *corev1.Node) bool {
	if len(term.MatchFields)+len(term.MatchExpressions) == 0 {
		return false
	}
	for i := range term.MatchFields {
		requirement := &term.MatchFields[i]
		if requirement.Key != "metadata.name" || !matchesRequirement(requirement, node.Name, true) {
			return false
		}
	}
	for i := range term.MatchExpressions {
		value, exists := node.Labels[term.MatchExpressions[i].Key]
		if !matchesRequirement(&term.MatchExpressions[i], value, exists) {
			return false
		}
	}
	return true
}

func matchesRequirement(requirement *corev1.NodeSelectorRequirement, value string, exists bool) bool {
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn:
		return exists && slices.Contains(requirement.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !exists || !slices.Contains(requirement.Values, value)
	case corev1.NodeSelectorOpExists:
		return exists
	case corev1.NodeSelectorOpDoesNotExist:
		return !exists
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if !exists || len(requirement.Values) != 1 {
			return false
		}
		number, err := strconv.ParseInt(value, 10, 64)
		limit, errLimit := strconv.ParseInt(requirement.Values[0], 10, 64)
		if err != nil || errLimit != nil {
			return false
		}
		return requirement.Operator == corev1.NodeSelectorOpGt && number > limit || requirement.Operator == corev1.NodeSelectorOpLt && number < limit
	}
	return false
}

// pinnedNodes returns the only nodes that a node selector can admit, if it names them.
func pinnedNodes(selector *corev1.NodeSelector) (names []string, isPinned bool) {
	if selector == nil {
		return nil, false
	}
	for i := range selector.NodeSelectorTerms {
		fields := selector.NodeSelectorTerms[i].MatchFields
		named := slices.IndexFunc(fields, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == "metadata.name" && r.Operator == corev1.NodeSelectorOpIn
		})
		if named < 0 {
			return nil, false
		}
		names = append(names, fields[named].Values...)
	}
	return names, true
}

// reachesNode reports whether a node can use a device of a slice.
func reachesNode(slice *resourcev1.ResourceSlice, device *resourcev1.Device, node *corev1.Node) bool {
	nodeName, nodeSelector, allNodes := slice.Spec.NodeName, slice.Spec.NodeSelector, slice.Spec.AllNodes
	if isTrue(slice.Spec.PerDeviceNodeSelection) {
		nodeName, nodeSelector, allNodes = device.NodeName, device.NodeSelector, device.AllNodes
	}
	switch {
	case nodeName != nil && *nodeName != "":
		return *nodeName == node.Name
	case nodeSelector != nil:
		return admitsNode(nodeSelector, node)
	}
	return isTrue(allNodes)
}

// isNodeLocal reports whether an allocation of a device holds for one node only.
func isNodeLocal(slice *resourcev1.ResourceSlice, device *resourcev1.Device) bool {
	nodeName := slice.Spec.NodeName
	if isTrue(slice.Spec.PerDeviceNodeSelection) {
		nodeName = device.NodeName
	}
	return nodeName != nil && *nodeName != "" || isTrue(device.BindsToNode)
}

func isTrue(value *bool) bool { return value != nil && *value }
