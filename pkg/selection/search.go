// Package selection finds templates that select no node, and says by what they
// miss the node that they miss by the least.
package selection

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Unselected is a template that selects none of the nodes.
type Unselected struct {
	Template *devices.Template
	// Nodes are how many nodes there are.
	Nodes int
	// Miss is what is wrong with the node that the template misses by the least. It is
	// nil if there are no nodes.
	Miss *Miss

	terms []term
}

// Of finds the templates that select none of the nodes, in their order.
func Of(templates []*devices.Template, nodes iter.Seq[*corev1.Node]) []*Unselected {
	var left []*Unselected
	for _, template := range templates {
		left = append(left, &Unselected{Template: template, terms: termsOf(template.NodeSelector)})
	}
	for node := range nodes {
		left = slices.DeleteFunc(left, func(u *Unselected) bool { return u.Template.Selects(node) })
		if len(left) == 0 {
			break
		}
		for _, u := range left {
			u.look(node)
		}
	}
	return left
}

func (u *Unselected) look(node *corev1.Node) {
	u.Nodes++
	for _, t := range u.terms {
		// Of two that are as near, the one whose node is first by its name, so that the
		// answer is always the same.
		if miss := t.miss(node); u.Miss == nil || cmp.Or(miss.compare(u.Miss), cmp.Compare(miss.Node, u.Miss.Node)) < 0 {
			u.Miss = miss
		}
	}
}

// String says which template it is, and by what it misses.
func (u *Unselected) String() string {
	text := fmt.Sprintf("template %s selects 0 of %d nodes", u.Template.Name, u.Nodes)
	if u.Miss == nil {
		return text
	}
	return text + ": " + u.Miss.String()
}
