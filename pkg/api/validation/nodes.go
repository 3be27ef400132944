package validation

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateFakeNodes checks the selector of the nodes that a template is for.
func validateFakeNodes(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	if selector != nil && len(selector.NodeSelectorTerms) == 0 {
		return required(path.Child("nodeSelectorTerms"), "give at least one term, or leave nodeSelector out to select every fake node")
	}
	return validateTerms(selector, path)
}

func validateSharedWith(shared *v1alpha1.SharedWith, path *field.Path) field.ErrorList {
	if shared == nil {
		return nil
	}
	given := 0
	for _, is := range []bool{shared.AllNodes, shared.NodeSelector != nil, shared.PerDeviceNodeSelection} {
		if is {
			given++
		}
	}
	if given != 1 {
		return invalid(path, shared, "must have exactly one of allNodes: true, nodeSelector and perDeviceNodeSelection: true")
	}
	return validateOneTerm(shared.NodeSelector, path.Child("nodeSelector"))
}

// validateNodesOf checks the nodes that a device itself says it is for.
func validateNodesOf(device *v1alpha1.DeviceTemplate, perDevice bool, path *field.Path) field.ErrorList {
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
		return forbidden(path.Child(given[0]), "only with sharedWith.perDeviceNodeSelection: true; the nodes of a whole template are given in spec.nodeSelector")
	case !perDevice:
		return nil
	case len(given) == 0:
		return required(path, "exactly one of nodeName, nodeSelector and allNodes, since sharedWith has perDeviceNodeSelection")
	case len(given) > 1:
		return invalid(path, strings.Join(given, ", "), "must have exactly one of nodeName, nodeSelector and allNodes")
	case device.AllNodes != nil && !*device.AllNodes:
		return invalid(path.Child("allNodes"), false, "must be true, or left out")
	case device.NodeName != "" && !v1alpha1.IsTemplate(device.NodeName):
		return ValidateSubdomain(device.NodeName, path.Child("nodeName"))
	}
	return validateOneTerm(device.NodeSelector, path.Child("nodeSelector"))
}

// validateOneTerm checks a selector that a ResourceSlice has. The API server
// wants exactly one term, for the sake of those who merge selectors.
func validateOneTerm(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	if selector != nil && len(selector.NodeSelectorTerms) != 1 {
		return invalid(path.Child("nodeSelectorTerms"), len(selector.NodeSelectorTerms), "must have exactly one term")
	}
	return validateTerms(selector, path)
}

func validateTerms(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	var errs field.ErrorList
	for i, term := range selector.NodeSelectorTerms {
		at := path.Child("nodeSelectorTerms").Index(i)
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			errs = append(errs, field.Required(at, "a term without matchExpressions and matchFields selects no node"))
		}
		for j := range term.MatchExpressions {
			errs = append(errs, validateExpression(&term.MatchExpressions[j], at.Child("matchExpressions").Index(j))...)
		}
		for j := range term.MatchFields {
			errs = append(errs, validateField(&term.MatchFields[j], at.Child("matchFields").Index(j))...)
		}
	}
	return errs
}

func validateExpression(expression *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	errs := labelKeyForm.check(expression.Key, path.Child("key"))
	values := path.Child("values")
	for i, value := range expression.Values {
		errs = append(errs, labelValueForm.check(value, values.Index(i))...)
	}
	switch expression.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(expression.Values) == 0 {
			errs = append(errs, field.Required(values, "at least one with the operator "+string(expression.Operator)))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(expression.Values) > 0 {
			errs = append(errs, field.Forbidden(values, "there are none with the operator "+string(expression.Operator)))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(expression.Values) != 1 {
			return append(errs, field.Required(values, "exactly one with the operator "+string(expression.Operator)))
		}
		if _, err := strconv.ParseInt(expression.Values[0], 10, 64); err != nil {
			errs = append(errs, field.Invalid(values.Index(0), expression.Values[0], "must be an integer with the operator "+string(expression.Operator)))
		}
	default:
		errs = append(errs, oneOf(path.Child("operator"), expression.Operator,
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
			corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)...)
	}
	return errs
}

// validateField checks a requirement of the only field of a node that can be
// selected by, its name.
func validateField(requirement *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("key"), requirement.Key, "metadata.name")
	errs = append(errs, oneOf(path.Child("operator"), requirement.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)...)
	values := path.Child("values")
	if len(requirement.Values) != 1 {
		errs = append(errs, field.Invalid(values, requirement.Values, "must be exactly one; for several nodes select by the label kubernetes.io/hostname in matchExpressions"))
	}
	for i, name := range requirement.Values {
		errs = append(errs, ValidateSubdomain(name, values.Index(i))...)
	}
	return errs
}

// validateNodeResources checks what a device takes of the node's own resources.
func validateNodeResources(resources map[corev1.ResourceName]resourcev1.NodeAllocatableResource, capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, path *field.Path) field.ErrorList {
	return eachOf(path, resources, func(name corev1.ResourceName, taken resourcev1.NodeAllocatableResource, path *field.Path) field.ErrorList {
		var errs field.ErrorList
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			errs = invalid(path, name, "must be cpu, memory or hugepages-<size>")
		}
		if taken.Mapping == nil && taken.Overhead == nil {
			errs = append(errs, field.Required(path, "mapping, overhead or both"))
		}
		return slices.Concat(errs,
			validateMapping(taken.Mapping, capacities, path.Child("mapping")),
			validateOverhead(taken.Overhead, path.Child("overhead")),
		)
	})
}

func validateMapping(mapping *resourcev1.NodeAllocatableMapping, capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, path *field.Path) field.ErrorList {
	if mapping == nil {
		return nil
	}
	if (mapping.CapacityKey == nil) == (mapping.DeviceMultiplier == nil) {
		return invalid(path, mapping, "must have exactly one of capacityKey and deviceMultiplier")
	}
	errs := moreThanZero(mapping.DeviceMultiplier, path.Child("deviceMultiplier"))
	errs = append(errs, moreThanZero(mapping.CapacityMultiplier, path.Child("capacityMultiplier"))...)
	if (mapping.CapacityKey == nil) != (mapping.CapacityMultiplier == nil) {
		errs = append(errs, field.Invalid(path, mapping, "must have both of capacityKey and capacityMultiplier, or none"))
	}
	if mapping.CapacityKey != nil {
		if _, has := capacities[*mapping.CapacityKey]; !has {
			errs = append(errs, field.Invalid(path.Child("capacityKey"), *mapping.CapacityKey, "must be the name of a capacity of the device"+of(capacities)))
		}
	}
	return errs
}

func validateOverhead(overhead *resourcev1.NodeAllocatableOverhead, path *field.Path) field.ErrorList {
	if overhead == nil {
		return nil
	}
	if overhead.PerPod == nil && overhead.PerContainer == nil {
		return required(path, "perPod, perContainer or both")
	}
	return append(notNegative(overhead.PerPod, path.Child("perPod")), notNegative(overhead.PerContainer, path.Child("perContainer"))...)
}
