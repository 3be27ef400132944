package validation

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateNodesOf checks the nodes that a device selects itself.
func validateNodesOf(device *v1alpha1.DeviceTemplate, shared *v1alpha1.SharedWith, at checker) {
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
	switch perDevice := shared != nil && shared.PerDeviceNodeSelection; {
	case !perDevice && len(given) > 0:
		at.atField(given[0]).forbid(true, "only with sharedWith.perDeviceNodeSelection: true; the nodes of a whole template are given in spec.nodeSelector")
	case !perDevice:
	case len(given) == 0:
		at.requirePresence(false, "exactly one of nodeName, nodeSelector and allNodes, since sharedWith has perDeviceNodeSelection")
	case len(given) > 1:
		at.addInvalid(strings.Join(given, ", "), "must have exactly one of nodeName, nodeSelector and allNodes")
	case device.AllNodes != nil && !*device.AllNodes:
		at.atField("allNodes").addInvalid(false, "must be true, or left out")
	case device.NodeName != "" && !v1alpha1.IsTemplate(device.NodeName):
		subdomainForm.checkName(device.NodeName, at.atField("nodeName"))
	default:
		validateNodeSelector(device.NodeSelector, true, at.atField("nodeSelector"))
	}
}

// validateNodeSelector applies the API server's rules. A selector of a ResourceSlice has exactly one
// term, so that clients can merge selectors.
func validateNodeSelector(selector *corev1.NodeSelector, isOfSlice bool, at checker) {
	if selector == nil {
		return
	}
	n, terms := len(selector.NodeSelectorTerms), at.atField("nodeSelectorTerms")
	if isOfSlice && !terms.requireThat(n == 1, n, "must have exactly one term") {
		return
	}
	terms.requirePresence(n > 0, "give at least one term, or leave nodeSelector out to select every fake node")
	for i, term := range selector.NodeSelectorTerms {
		at := terms.atIndex(i)
		at.requirePresence(len(term.MatchExpressions)+len(term.MatchFields) > 0, "a term without matchExpressions and matchFields selects no node")
		for j := range term.MatchExpressions {
			validateExpression(&term.MatchExpressions[j], at.atField("matchExpressions").atIndex(j))
		}
		for j, name := range term.MatchFields { // metadata.name is the only field of nodes to select by
			at := at.atField("matchFields").atIndex(j)
			oneOf(at.atField("key"), name.Key, "metadata.name")
			oneOf(at.atField("operator"), name.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
			values := at.atField("values")
			values.requireThat(len(name.Values) == 1, name.Values,
				"must be exactly one; for several nodes select by the label kubernetes.io/hostname in matchExpressions")
			for k, value := range name.Values {
				subdomainForm.checkName(value, values.atIndex(k))
			}
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
		values.forbid(len(expression.Values) > 0, "there are none with the operator %s", operator)
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
