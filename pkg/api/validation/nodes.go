package validation

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateNodesOf checks the nodes that a device selects itself.
func validateNodesOf(device *v1alpha1.DeviceTemplate, shared *v1alpha1.SharedWith, at fieldcheck.Checker) {
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
		at.AtField(given[0]).Forbid(true, "only with sharedWith.perDeviceNodeSelection: true; the nodes of a whole template are given in spec.nodeSelector")
	case !perDevice:
	case len(given) == 0:
		at.RequirePresence(false, "exactly one of nodeName, nodeSelector and allNodes, since sharedWith has perDeviceNodeSelection")
	case len(given) > 1:
		at.AddInvalid(strings.Join(given, ", "), "must have exactly one of nodeName, nodeSelector and allNodes")
	case device.AllNodes != nil && !*device.AllNodes:
		at.AtField("allNodes").AddInvalid(false, "must be true, or left out")
	case device.NodeName != "" && !v1alpha1.IsTemplate(device.NodeName):
		subdomainForm.checkName(device.NodeName, at.AtField("nodeName"))
	default:
		validateNodeSelector(device.NodeSelector, true, at.AtField("nodeSelector"))
	}
}

// validateNodeSelector applies the API server's rules. A selector of a ResourceSlice has exactly one
// term, so that clients can merge selectors.
func validateNodeSelector(selector *corev1.NodeSelector, isOfSlice bool, at fieldcheck.Checker) {
	if selector == nil {
		return
	}
	n, terms := len(selector.NodeSelectorTerms), at.AtField("nodeSelectorTerms")
	if isOfSlice && !terms.RequireThat(n == 1, n, "must have exactly one term") {
		return
	}
	terms.RequirePresence(n > 0, "give at least one term, or leave nodeSelector out to select every fake node")
	for i, term := range selector.NodeSelectorTerms {
		at := terms.AtIndex(i)
		at.RequirePresence(len(term.MatchExpressions)+len(term.MatchFields) > 0, "a term without matchExpressions and matchFields selects no node")
		for j := range term.MatchExpressions {
			validateExpression(&term.MatchExpressions[j], at.AtField("matchExpressions").AtIndex(j))
		}
		for j, name := range term.MatchFields { // metadata.name is the only field of nodes to select by
			at := at.AtField("matchFields").AtIndex(j)
			fieldcheck.OneOf(at.AtField("key"), name.Key, "metadata.name")
			fieldcheck.OneOf(at.AtField("operator"), name.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
			values := at.AtField("values")
			values.RequireThat(len(name.Values) == 1, name.Values,
				"must be exactly one; for several nodes select by the label kubernetes.io/hostname in matchExpressions")
			for k, value := range name.Values {
				subdomainForm.checkName(value, values.AtIndex(k))
			}
		}
	}
}

func validateExpression(expression *corev1.NodeSelectorRequirement, at fieldcheck.Checker) {
	labelKeyForm.checkName(expression.Key, at.AtField("key"))
	operator, values := expression.Operator, at.AtField("values")
	for i, value := range expression.Values {
		labelValueForm.checkName(value, values.AtIndex(i))
	}
	switch operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		values.RequirePresence(len(expression.Values) > 0, "at least one with the operator %s", operator)
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		values.Forbid(len(expression.Values) > 0, "there are none with the operator %s", operator)
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if values.RequirePresence(len(expression.Values) == 1, "exactly one with the operator %s", operator) {
			_, err := strconv.ParseInt(expression.Values[0], 10, 64)
			values.AtIndex(0).RequireThat(err == nil, expression.Values[0], "must be an integer with the operator %s", operator)
		}
	default:
		fieldcheck.OneOf(at.AtField("operator"), operator,
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
			corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
	}
}
