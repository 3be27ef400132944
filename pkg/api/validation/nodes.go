package validation

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateFakeNodes checks the selector of a template's nodes.
func validateFakeNodes(selector *corev1.NodeSelector, at checker) {
	at.atField("nodeSelectorTerms").requirePresence(selector == nil || len(selector.NodeSelectorTerms) > 0,
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
	if at.requireThat(given == 1, shared, "must have exactly one of allNodes: true, nodeSelector and perDeviceNodeSelection: true") {
		validateOneTerm(shared.NodeSelector, at.atField("nodeSelector"))
	}
}

// validateNodesOf checks the nodes that a device selects itself.
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
		at.atField(given[0]).addForbidden("only with sharedWith.perDeviceNodeSelection: true; the nodes of a whole template are given in spec.nodeSelector")
	case !perDevice:
	case len(given) == 0:
		at.addRequired("exactly one of nodeName, nodeSelector and allNodes, since sharedWith has perDeviceNodeSelection")
	case len(given) > 1:
		at.addInvalid(strings.Join(given, ", "), "must have exactly one of nodeName, nodeSelector and allNodes")
	case device.AllNodes != nil && !*device.AllNodes:
		at.atField("allNodes").addInvalid(false, "must be true, or left out")
	case device.NodeName != "" && !v1alpha1.IsTemplate(device.NodeName):
		subdomainForm.checkName(device.NodeName, at.atField("nodeName"))
	default:
		validateOneTerm(device.NodeSelector, at.atField("nodeSelector"))
	}
}

// validateOneTerm checks a selector of a ResourceSlice. The API server requires exactly one term, so
// that clients can merge selectors.
func validateOneTerm(selector *corev1.NodeSelector, at checker) {
	if selector != nil && len(selector.NodeSelectorTerms) != 1 {
		at.atField("nodeSelectorTerms").addInvalid(len(selector.NodeSelectorTerms), "must have exactly one term")
		return
	}
	validateTerms(selector, at)
}

func validateTerms(selector *corev1.NodeSelector, at checker) {
	if selector == nil {
		return
	}
	for i, term := range selector.NodeSelectorTerms {
		at := at.atField("nodeSelectorTerms").atIndex(i)
		at.requirePresence(len(term.MatchExpressions)+len(term.MatchFields) > 0, "a term without matchExpressions and matchFields selects no node")
		for j := range term.MatchExpressions {
			validateExpression(&term.MatchExpressions[j], at.atField("matchExpressions").atIndex(j))
		}
		for j := range term.MatchFields {
			validateField(&term.MatchFields[j], at.atField("matchFields").atIndex(j))
		}
	}
}

func validateExpression(expression *corev1.NodeSelectorRequirement, at checker) {
	labelKeyForm.checkName(expression.Key, at.atField("key"))
	operator, values := expression.Operator, at.atField("values")
	for i, value := range expression.Values {
		labelValueForm.checkName(value, values.atIndex(i))
	}
	switch operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		values.requirePresence(len(expression.Values) > 0, "at least one with the operator %s", operator)
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(expression.Values) > 0 {
			values.addForbidden("there are none with the operator " + string(operator))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if values.requirePresence(len(expression.Values) == 1, "exactly one with the operator %s", operator) {
			_, err := strconv.ParseInt(expression.Values[0], 10, 64)
			values.atIndex(0).requireThat(err == nil, expression.Values[0], "must be an integer with the operator %s", operator)
		}
	default:
		oneOf(at.atField("operator"), operator,
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
			corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
	}
}

// validateField checks a requirement of a node's name, the only field that nodes are selected by.
func validateField(requirement *corev1.NodeSelectorRequirement, at checker) {
	oneOf(at.atField("key"), requirement.Key, "metadata.name")
	oneOf(at.atField("operator"), requirement.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
	values := at.atField("values")
	values.requireThat(len(requirement.Values) == 1, requirement.Values,
		"must be exactly one; for several nodes select by the label kubernetes.io/hostname in matchExpressions")
	for i, name := range requirement.Values {
		subdomainForm.checkName(name, values.atIndex(i))
	}
}

// validateNodeResources checks what a device consumes of the node's own resources.
func validateNodeResources(device *v1alpha1.DeviceTemplate, at checker) {
	checkValues(at, device.NodeAllocatableResources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, at checker) {
		isKnown := name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		at.requireThat(isKnown, name, "must be cpu, memory or hugepages-<size>")
		at.requirePresence(taken.Mapping != nil || taken.Overhead != nil, "mapping, overhead or both")
		if taken.Mapping != nil {
			validateMapping(taken.Mapping, device.Capacity, at.atField("mapping"))
		}
		if overhead, at := taken.Overhead, at.atField("overhead"); overhead != nil {
			at.requirePresence(overhead.PerPod != nil || overhead.PerContainer != nil, "perPod, perContainer or both")
			at.atField("perPod").notNegative(overhead.PerPod)
			at.atField("perContainer").notNegative(overhead.PerContainer)
		}
	})
}

func validateMapping(mapping *resourcev1.NodeAllocatableMapping, capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, at checker) {
	key := mapping.CapacityKey
	if !at.requireThat((key == nil) != (mapping.DeviceMultiplier == nil), mapping, "must have exactly one of capacityKey and deviceMultiplier") {
		return
	}
	at.atField("deviceMultiplier").moreThanZero(mapping.DeviceMultiplier)
	at.atField("capacityMultiplier").moreThanZero(mapping.CapacityMultiplier)
	at.requireThat((key == nil) == (mapping.CapacityMultiplier == nil), mapping, "must have both of capacityKey and capacityMultiplier, or none")
	if key != nil {
		_, has := capacities[*key]
		at.atField("capacityKey").requireThat(has, *key, "must be the name of a capacity of the device%s", listNames(capacities))
	}
}
