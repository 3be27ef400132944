package selection

import (
	"cmp"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// Miss is how a term of a template's node selector misses a node.
type Miss struct {
	// Node is the name of the node.
	Node string
	// failing describes the requirements that fail, and distance is how far the node's values are
	// from those that they want.
	failing  []string
	distance int
}

// compareDistance is negative if a miss is nearer than another: fewer requirements fail, or the values
// are more alike.
func (m *Miss) compareDistance(other *Miss) int {
	return cmp.Or(cmp.Compare(len(m.failing), len(other.failing)), cmp.Compare(m.distance, other.distance))
}

// String says which requirements fail on the node.
func (m *Miss) String() string {
	return strings.Join(m.failing, ", and ") + " (node " + m.Node + ")"
}

// term is a term of a node selector. All of its requirements must match.
type term []requirement

type requirement struct {
	corev1.NodeSelectorRequirement

	// isField is true for a key that is a field of the Node, and not a label.
	isField  bool
	selector *nodeaffinity.LazyErrorNodeSelector
}

func termsOf(selector *corev1.NodeSelector) []term {
	if selector == nil {
		return nil
	}
	var all []term
	for _, source := range selector.NodeSelectorTerms {
		var t term
		for _, r := range source.MatchExpressions {
			t = append(t, requirement{r, false, selectorOf(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})})
		}
		for _, r := range source.MatchFields {
			t = append(t, requirement{r, true, selectorOf(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}})})
		}
		all = append(all, t)
	}
	return all
}

func selectorOf(t corev1.NodeSelectorTerm) *nodeaffinity.LazyErrorNodeSelector {
	return nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t}})
}

// missOf returns how the term misses a node.
func (t term) missOf(node *corev1.Node) *Miss {
	m := &Miss{Node: node.Name}
	for i := range t {
		if matched, _ := t[i].selector.Match(node); matched { // an invalid one was refused with the template
			continue
		}
		text, distance := t[i].describeFailure(node)
		m.failing = append(m.failing, text)
		m.distance += distance
	}
	return m
}

// missingLabel is the distance of a label that the node lacks. It is farther than any value.
const missingLabel = math.MaxInt16

// describeFailure says how the requirement fails on a node, and by what distance.
func (r *requirement) describeFailure(node *corev1.Node) (string, int) {
	value, found := node.Labels[r.Key]
	if r.isField {
		value, found = node.Name, true // the only field that there is
	}
	text, distance := r.Key+" is "+cmp.Or(value, "empty"), 1
	if !found {
		text, distance = "label "+r.Key+" is missing", missingLabel
	} else if r.Operator == corev1.NodeSelectorOpIn {
		distance = r.nearestDistance(value)
	}
	if wanted := r.wantedValue(); wanted != "" {
		text += ", must be " + wanted
	}
	return text, distance
}

// wantedValue says what the value must be. It is empty if any will do.
func (r *requirement) wantedValue() string {
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

// nearestDistance is the least distance of a value to the wanted ones.
func (r *requirement) nearestDistance(value string) int {
	least := missingLabel - 1
	for _, wanted := range r.Values {
		least = min(least, suggest.Distance(value, wanted))
	}
	return least
}
