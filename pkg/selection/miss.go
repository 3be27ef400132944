package selection

import (
	"fmt"
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

// Nearer reports whether a miss is nearer than another: fewer requirements fail,
// or the values are more alike.
func (m *Miss) Nearer(than *Miss) bool {
	if len(m.failing) != len(than.failing) {
		return len(m.failing) < len(than.failing)
	}
	return m.distance < than.distance
}

// before reports whether a miss is to be told rather than another: the nearer, or
// else that of the node whose name is first, so that the answer is always the
// same.
func (m *Miss) before(other *Miss) bool {
	return m.Nearer(other) || !other.Nearer(m) && m.Node < other.Node
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
	selector *nodeaffinity.NodeSelector
}

// termsOf are the terms of a valid selector.
func termsOf(selector *corev1.NodeSelector) []term {
	all := []term{}
	if selector == nil {
		return all
	}
	for i := range selector.NodeSelectorTerms {
		var t term
		for _, expression := range selector.NodeSelectorTerms[i].MatchExpressions {
			t = append(t, newRequirement(expression, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{expression}}))
		}
		for _, field := range selector.NodeSelectorTerms[i].MatchFields {
			r := newRequirement(field, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{field}})
			r.field = true
			t = append(t, r)
		}
		all = append(all, t)
	}
	return all
}

func newRequirement(source corev1.NodeSelectorRequirement, alone corev1.NodeSelectorTerm) requirement {
	// What is invalid has been refused with the template.
	selector, _ := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{alone}})
	return requirement{NodeSelectorRequirement: source, selector: selector}
}

// miss is how the term misses a node.
func (t term) miss(node *corev1.Node) *Miss {
	m := &Miss{Node: node.Name}
	for i := range t {
		r := &t[i]
		if r.selector != nil && r.selector.Match(node) {
			continue
		}
		text, distance := r.fails(node)
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
	values := strings.Join(r.Values, " or ")
	if !found {
		if len(r.Values) == 0 {
			return fmt.Sprintf("label %s is missing", r.Key), missing
		}
		return fmt.Sprintf("label %s is missing, must be %s", r.Key, r.wants(values)), missing
	}
	is := fmt.Sprintf("%s is %s", r.Key, value)
	if value == "" {
		is = fmt.Sprintf("%s is empty", r.Key)
	}
	if r.Operator == corev1.NodeSelectorOpIn {
		return is + ", must be " + values, r.nearest(value)
	}
	return is + ", must be " + r.wants(values), 1
}

// wants says what the value must be.
func (r *requirement) wants(values string) string {
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
