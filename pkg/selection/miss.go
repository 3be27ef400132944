package selection

import (
	"cmp"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// Miss is how a term of a template's node selector misses a node.
type Miss struct {
	// Node is the name of the node.
	Node string
	// failing are the requirements that fail, and distance is how far the values of
	// the node are from those that they want.
	failing  []string
	distance int
}

// compare is negative where a miss is nearer than another: fewer requirements fail,
// or the values are more alike.
func (m *Miss) compare(other *Miss) int {
	return cmp.Or(cmp.Compare(len(m.failing), len(other.failing)), cmp.Compare(m.distance, other.distance))
}

// String says which requirements fail on the node.
func (m *Miss) String() string {
	return strings.Join(m.failing, ", and ") + " (node " + m.Node + ")"
}

// term is a term of a node selector, of which all requirements must match.
type term []requirement

type requirement struct {
	corev1.NodeSelectorRequirement

	// field has the key be a field of the node, and no label.
	field    bool
	selector *nodeaffinity.LazyErrorNodeSelector
}

// termsOf are the terms of a selector.
func termsOf(selector *corev1.NodeSelector) []term {
	if selector == nil {
		return nil
	}
	var all []term
	for _, source := range selector.NodeSelectorTerms {
		var t term
		for _, r := range source.MatchExpressions {
			t = append(t, requirement{r, false, only(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})})
		}
		for _, r := range source.MatchFields {
			t = append(t, requirement{r, true, only(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}})})
		}
		all = append(all, t)
	}
	return all
}

func only(t corev1.NodeSelectorTerm) *nodeaffinity.LazyErrorNodeSelector {
	return nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t}})
}

// miss is how the term misses a node.
func (t term) miss(node *corev1.Node) *Miss {
	m := &Miss{Node: node.Name}
	for i := range t {
		if matched, _ := t[i].selector.Match(node); matched { // what is invalid has been refused with the template
			continue
		}
		text, distance := t[i].fails(node)
		m.failing = append(m.failing, text)
		m.distance += distance
	}
	return m
}

// missing is the distance of a label that the node does not have: it is farther
// than any other value.
const missing = math.MaxInt16

// fails says how the requirement fails on a node, and by how much.
func (r *requirement) fails(node *corev1.Node) (string, int) {
	value, found := node.Labels[r.Key]
	if r.field {
		value, found = node.Name, true // the only field that there is
	}
	text, distance := r.Key+" is "+cmp.Or(value, "empty"), 1
	if !found {
		text, distance = "label "+r.Key+" is missing", missing
	} else if r.Operator == corev1.NodeSelectorOpIn {
		distance = r.nearest(value)
	}
	if wants := r.wants(); wants != "" {
		text += ", must be " + wants
	}
	return text, distance
}

// wants says what the value must be. It is empty where any will do.
func (r *requirement) wants() string {
	values := strings.Join(r.Values, " or ")
	switch r.Operator {
	case corev1.NodeSelectorOpNotIn:
		return "other than " + values
	case corev1.NodeSelectorOpDoesNotExist:
		return "missing"
	case corev1.NodeSelectorOpGt:
		return "greater than " + values
	case corev1.NodeSelectorOpLt:
		return "less than " + values
	}
	return values
}

// nearest is the least distance of a value to those that are wanted.
func (r *requirement) nearest(value string) int {
	least := missing - 1
	for _, wanted := range r.Values {
		least = min(least, suggest.Distance(value, wanted))
	}
	return least
}
