// Package selection finds templates that select no node, and says by what they
// miss the node that they miss by the least.
package selection

import (
	"fmt"

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
}

// String says which template it is, and by what it misses.
func (u *Unselected) String() string {
	text := fmt.Sprintf("template %s selects 0 of %d nodes", u.Template.Name, u.Nodes)
	if u.Miss == nil {
		return text
	}
	return text + ": " + u.Miss.String()
}

// Search looks at nodes, one after the other, for templates that select none of
// them.
type Search struct {
	nodes int
	left  []*candidate
}

// candidate is a template that has selected no node so far.
type candidate struct {
	template *devices.Template
	terms    []term
	nearest  *Miss
}

// NewSearch makes a Search for nodes of the templates.
func NewSearch(templates ...*devices.Template) *Search {
	s := &Search{}
	for _, template := range templates {
		s.left = append(s.left, &candidate{template: template})
	}
	return s
}

// Look looks at a node, and returns the templates that select it as the first.
func (s *Search) Look(node *corev1.Node) []*devices.Template {
	s.nodes++
	var found []*devices.Template
	left := s.left[:0]
	for _, c := range s.left {
		if c.template.Selects(node) {
			found = append(found, c.template)
			continue
		}
		c.look(node)
		left = append(left, c)
	}
	s.left = left
	return found
}

// Done reports whether all templates have selected a node.
func (s *Search) Done() bool { return len(s.left) == 0 }

// Unselected are the templates that have selected no node, in their order.
func (s *Search) Unselected() []Unselected {
	all := make([]Unselected, len(s.left))
	for i, c := range s.left {
		all[i] = Unselected{Template: c.template, Nodes: s.nodes, Miss: c.nearest}
	}
	return all
}

func (c *candidate) look(node *corev1.Node) {
	if c.terms == nil {
		c.terms = termsOf(c.template.NodeSelector())
	}
	for _, t := range c.terms {
		if miss := t.miss(node); c.nearest == nil || miss.before(c.nearest) {
			c.nearest = miss
		}
	}
}

// Of searches some nodes.
func Of(templates []*devices.Template, nodes []*corev1.Node) []Unselected {
	search := NewSearch(templates...)
	for _, node := range nodes {
		search.Look(node)
	}
	return search.Unselected()
}
