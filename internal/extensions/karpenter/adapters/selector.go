package adapters

import (
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	terms = field.NewPath("spec", "nodeSelector", "nodeSelectorTerms")
	// expressions is the path of the only term, for documents without terms.
	expressions = terms.Index(0).Child("matchExpressions")
)

// fakeNodeLabels are the labels that every node of kwok-dra is taken to have.
var fakeNodeLabels = labels.Set{"kwok.x-k8s.io/node": "fake"}

// requireNodeLabel adds a requirement for the labels of nodes, and returns its path.
func (d *draft) requireNodeLabel(requirement corev1.NodeSelectorRequirement, origin *field.Path) (at *field.Path) {
	spec := &d.template.Spec
	if spec.NodeSelector == nil {
		spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
	}
	term := &spec.NodeSelector.NodeSelectorTerms[0]
	at = expressions.Index(len(term.MatchExpressions))
	d.setOrigin(at, origin)
	term.MatchExpressions = append(term.MatchExpressions, requirement)
	return at
}

// requireLabels adds the requirements of a label selector. Every node that kwok-dra acts for meets a
// requirement of the label kwok.x-k8s.io/node that the value "fake" meets, even without the label:
// KWOK itself marks nodes with an annotation of that name.
func (a *adapter) requireLabels(d *draft, selector *metav1.LabelSelector, path *field.Path) {
	a.requireField(len(selector.MatchLabels)+len(selector.MatchExpressions) > 0, path,
		"matchLabels, matchExpressions or both; matchLabels: {kwok.x-k8s.io/node: fake} selects every fake node")
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		expression := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]}}
		origin := path.Child("matchLabels").Key(key)
		if at := d.requireLabel(expression, origin); at != nil {
			d.setOrigin(at.Child("key"), origin)
			d.setOrigin(at.Child("values").Index(0), origin)
		}
	}
	for i, expression := range selector.MatchExpressions {
		origin := path.Child("matchExpressions").Index(i)
		if !slices.Contains(labelOperators, expression.Operator) {
			a.addProblems(field.NotSupported(origin.Child("operator"), expression.Operator, labelOperators))
		}
		d.requireLabel(expression, origin)
	}
}

var labelOperators = []metav1.LabelSelectorOperator{
	metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
}

// requireLabel adds a requirement of a label selector, and returns its path, or nil if every fake
// node meets it.
func (d *draft) requireLabel(expression metav1.LabelSelectorRequirement, origin *field.Path) (at *field.Path) {
	alone, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression}})
	if fakeNodeLabels.Has(expression.Key) && err == nil && alone.Matches(fakeNodeLabels) {
		return nil
	}
	return d.requireNodeLabel(corev1.NodeSelectorRequirement{
		Key: expression.Key, Operator: corev1.NodeSelectorOperator(expression.Operator), Values: expression.Values,
	}, origin)
}

// Karpenter has two more operators for nodes than Kubernetes.
const (
	atLeast corev1.NodeSelectorOperator = "Gte"
	atMost  corev1.NodeSelectorOperator = "Lte"
)

// requireOverlaid adds a requirement of a NodeOverlay.
func (a *adapter) requireOverlaid(d *draft, requirement corev1.NodeSelectorRequirement, origin *field.Path) {
	if requirement.Operator != atLeast && requirement.Operator != atMost {
		d.requireNodeLabel(requirement, origin)
		return
	}
	values := origin.Child("values")
	if len(requirement.Values) != 1 {
		a.addProblems(field.Required(values, "exactly one with the operator "+string(requirement.Operator)))
		return
	}
	number, err := strconv.ParseInt(requirement.Values[0], 10, 64)
	if err != nil || number < 0 || number == math.MaxInt64 {
		a.addProblems(field.Invalid(values.Index(0), requirement.Values[0], "must be an integer of 0 or more with the operator "+string(requirement.Operator)))
		return
	}
	operator, bound := corev1.NodeSelectorOpGt, number-1
	if requirement.Operator == atMost {
		operator, bound = corev1.NodeSelectorOpLt, number+1
	}
	d.requireNodeLabel(corev1.NodeSelectorRequirement{Key: requirement.Key, Operator: operator, Values: []string{strconv.FormatInt(bound, 10)}}, origin)
}
