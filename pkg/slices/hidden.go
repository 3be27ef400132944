package slices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// tellHidden tells the object that has a template that another one hides it. One
// event for each two templates is enough, on however many nodes it is so.
func (p *Publisher) tellHidden(node *corev1.Node, hidden map[*devices.Template]*devices.Template) {
	for t, by := range hidden {
		if t.Origin.Carrier == nil || !p.firstTold(t, by) {
			continue
		}
		p.recorder.Event(t.Origin.Carrier, corev1.EventTypeWarning, v1alpha1.ReasonTemplateHidden,
			v1alpha1.EventMessage(fmt.Errorf("%s; for example on node %s", hides(t, by), node.Name)))
	}
}

func (p *Publisher) firstTold(t, by *devices.Template) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pair := [2]string{t.Name, by.Name}
	told := p.told[pair]
	p.told[pair] = true
	return !told
}

// hides says why a template does not count.
func hides(t, by *devices.Template) string {
	return fmt.Sprintf("template %s is hidden by template %s of the same driver, %s, whose priority is %d and not %d", t.Name, by.Name, t.Driver, by.Priority, t.Priority)
}

// Hidden is a template that another one hides on some nodes.
type Hidden struct {
	Template, By *devices.Template
	// Nodes is on how many.
	Nodes int
}

// String says which template hides which, and where.
func (h Hidden) String() string {
	nodes := "1 node"
	if h.Nodes != 1 {
		nodes = fmt.Sprintf("%d nodes", h.Nodes)
	}
	return hides(h.Template, h.By) + ", on " + nodes
}

// addHidden counts what is hidden on one more node.
func (p *Preview) addHidden(hidden map[*devices.Template]*devices.Template) {
	for _, t := range slices.SortedFunc(maps.Keys(hidden), func(a, b *devices.Template) int { return cmp.Compare(a.Name, b.Name) }) {
		i := slices.IndexFunc(p.Hidden, func(h Hidden) bool { return h.Template == t && h.By == hidden[t] })
		if i < 0 {
			i = len(p.Hidden)
			p.Hidden = append(p.Hidden, Hidden{Template: t, By: hidden[t]})
		}
		p.Hidden[i].Nodes++
	}
}
