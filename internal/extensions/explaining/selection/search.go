package selection

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
)

// Unselected is a template that selects none of the nodes.
type Unselected struct {
	Template *devices.Template
	// Nodes is the number of nodes.
	Nodes int
	// Miss is the nearest miss. It is nil if there are no nodes.
	Miss *Miss

	terms []term
}

// Of returns the templates that select none of the nodes, in their order.
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
			u.addNode(node)
		}
	}
	return left
}

// addNode keeps the nearest miss.
func (u *Unselected) addNode(node *corev1.Node) {
	u.Nodes++
	for _, t := range u.terms {
		// Equal misses are ordered by their nodes' names, so that the answer is always the same.
		if miss := t.missOf(node); u.Miss == nil || cmp.Or(miss.compareDistance(u.Miss), cmp.Compare(miss.Node, u.Miss.Node)) < 0 {
			u.Miss = miss
		}
	}
}

// String names the template, and describes its nearest miss.
func (u *Unselected) String() string {
	text := fmt.Sprintf("template %s selects 0 of %d nodes", u.Template.Name, u.Nodes)
	if u.Miss == nil {
		return text
	}
	return text + ": " + u.Miss.String()
}
