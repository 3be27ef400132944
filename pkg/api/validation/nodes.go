package validation

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateFakeNodes checks the selector of the nodes that a template is for.
func validateFakeNodes(selector *corev1.NodeSelector, at checker) {
	at.child("nodeSelectorTerms").needs(selector == nil || len(selector.NodeSelectorTerms) > 0,
		"give at least one term, or leave nodeSelector out to select every fake node")
	validateTerms(selector, at)
}

func validateSharedWith(shared *v1alpha1.SharedWith, at checker) {
	if shared == nil {
		return
	}
	given := 0
	for _, is := range []bool{shared.AllNodes, shared.NodeSelector != nil, shared.PerDeviceNodeSelection} {
		if is {
			given++
		}
	}
	if at.must(given == 1, shared, "must have exactly one of allNodes: true, nodeSelector and perDeviceNodeSelection: true") {
		validateOneTerm(shared.NodeSelector, at.child("nodeSelector"))
	}
}

// validateNodesOf checks the nodes that a device itself says it is for.
func validateNodesOf(device *v1alpha1.DeviceTemplate, perDevice bool, at checker) {
	var given []string
	if device.NodeName != "" {
		given = append(given, "nodeName")
	}
	if device.NodeSelector != nil {
		given = append(given, "nodeSelector")
	}
	if device.AllNodes != nil {
		given = append(given, "allNodes")
	}
	switch {
	case !perDevice && len(given) > 0:
		at.child(given[0]).forbidden("only with sharedWith.perDeviceNodeSelection: true; the nodes of a whole template are given in spec.nodeSelector")
	case !perDevice:
	case len(given) == 0:
		at.required("exactly one of nodeName, nodeSelector and allNodes, since sharedWith has perDeviceNodeSelection")
	case len(given) > 1:
		at.invalid(strings.Join(given, ", "), "must have exactly one of nodeName, nodeSelector and allNodes")
	case device.AllNodes != nil && !*device.AllNodes:
		at.child("allNodes").invalid(false, "must be true, or left out")
	case device.NodeName != "" && !v1alpha1.IsTemplate(device.NodeName):
		subdomainForm.check(device.NodeName, at.child("nodeName"))
	default:
		validateOneTerm(device.NodeSelector, at.child("nodeSelector"))
	}
}

// validateOneTerm checks a selector that a ResourceSlice has. The API server
// wants exactly one term, for the sake of those who merge selectors.
func validateOneTerm(selector *corev1.NodeSelector, at checker) {
	if selector != nil && len(selector.NodeSelectorTerms) != 1 {
		at.child("nodeSelectorTerms").invalid(len(selector.NodeSelectorTerms), "must have exactly one term")
		return
	}
	validateTerms(selector, at)
}

func validateTerms(selector *corev1.NodeSelector, at checker) {
	if selector == nil {
		return
	}
	for i, term := range selector.NodeSelectorTerms {
		at := at.child("nodeSelectorTerms").index(i)
		at.needs(len(term.MatchExpressions)+len(term.MatchFields) > 0, "a term without matchExpressions and matchFields selects no node")
		for j := range term.MatchExpressions {
			validateExpression(&term.MatchExpressions[j], at.child("matchExpressions").index(j))
		}
		for j := range term.MatchFields {
			validateField(&term.MatchFields[j], at.child("matchFields").index(j))
		}
	}
}

func validateExpression(expression *corev1.NodeSelectorRequirement, at checker) {
	labelKeyForm.check(expression.Key, at.child("key"))
	operator, values := expression.Operator, at.child("values")
	for i, value := range expression.Values {
		labelValueForm.check(value, values.index(i))
	}
	switch operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		values.needs(len(expression.Values) > 0, "at least one with the operator %s", operator)
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(expression.Values) > 0 {
			values.forbidden("there are none with the operator " + string(operator))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if values.needs(len(expression.Values) == 1, "exactly one with the operator %s", operator) {
			_, err := strconv.ParseInt(expression.Values[0], 10, 64)
			values.index(0).must(err == nil, expression.Values[0], "must be an integer with the operator %s", operator)
		}
	default:
		oneOf(at.child("operator"), operator,
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
			corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
	}
}

// validateField checks a requirement of the only field of a node that can be
// selected by, its name.
func validateField(requirement *corev1.NodeSelectorRequirement, at checker) {
	oneOf(at.child("key"), requirement.Key, "metadata.name")
	oneOf(at.child("operator"), requirement.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
	values := at.child("values")
	values.must(len(requirement.Values) == 1, requirement.Values,
		"must be exactly one; for several nodes select by the label kubernetes.io/hostname in matchExpressions")
	for i, name := range requirement.Values {
		subdomainForm.check(name, values.index(i))
	}
}

// validateNodeResources checks what a device takes of the node's own resources.
func validateNodeResources(device *v1alpha1.DeviceTemplate, at checker) {
	eachOf(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, at checker) {
		isKnown := name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		at.must(isKnown, name, "must be cpu, memory or hugepages-<size>")
		at.needs(taken.Mapping != nil || taken.Overhead != nil, "mapping, overhead or both")
		if taken.Mapping != nil {
			validateMapping(taken.Mapping, device.Capacity, at.child("mapping"))
		}
		if overhead, at := taken.Overhead, at.child("overhead"); overhead != nil {
			at.needs(overhead.PerPod != nil || overhead.PerContainer != nil, "perPod, perContainer or both")
			at.child("perPod").notNegative(overhead.PerPod)
			at.child("perContainer").notNegative(overhead.PerContainer)
		}
	})
}

func validateMapping(mapping *resourcev1.NodeAllocatableMapping, capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, at checker) {
	key := mapping.CapacityKey
	if !at.must((key == nil) != (mapping.DeviceMultiplier == nil), mapping, "must have exactly one of capacityKey and deviceMultiplier") {
		return
	}
	at.child("deviceMultiplier").moreThanZero(mapping.DeviceMultiplier)
	at.child("capacityMultiplier").moreThanZero(mapping.CapacityMultiplier)
	at.must((key == nil) == (mapping.CapacityMultiplier == nil), mapping, "must have both of capacityKey and capacityMultiplier, or none")
	if key != nil {
		_, has := capacities[*key]
		at.child("capacityKey").must(has, *key, "must be the name of a capacity of the device%s", of(capacities))
	}
}
