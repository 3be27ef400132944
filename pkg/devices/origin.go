package devices

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Origin is the document that a template is from. Where a document makes
// several templates, they stand or fall together.
type Origin struct {
	// Document is how users know it, such as "DRAConfig gpus". It is empty for a
	// ResourcePoolTemplate, which is a document by itself.
	Document string
	// Part is what of the document the template is made from, such as "pool a".
	Part string
	// Carrier is the object in the cluster that has the document, or nil for a file.
	Carrier *corev1.ObjectReference
	// Created is when it was created in the cluster, or zero where it is no object
	// of its own.
	Created time.Time
}

// title is how users know the template.
func (t *Template) title() string {
	switch {
	case t.Origin.Document == "":
		return "template " + t.Name
	case t.Origin.Part == "":
		return t.Origin.Document
	}
	return t.Origin.Part + " of " + t.Origin.Document
}

// document is how users know the document that the template is from.
func (t *Template) document() string {
	if t.Origin.Document == "" {
		return t.title()
	}
	return t.Origin.Document
}

// Refusal is a document whose templates have no place on a node, since they
// clash with each other or with those of an older document.
type Refusal struct {
	Templates []*Template
	Err       error
}

// Standing makes a driver's pools on a node, as Pools does. Of templates that clash
// it leaves out all of the document that was created later; the others remain. The
// older document is the one that was created first; those that are no objects of their
// own count as older than any, and of two that are of the same age the one whose
// template has the first name. Taints are those of the node.
func Standing(templates []*Template, node *lifecycle.Object, taints Taints) ([]Pool, []Refusal, error) {
	pools, refusals, err := unrendered(templates, node)
	for i := 0; err == nil && i < len(pools); i++ {
		if err = pools[i].render(node); err == nil {
			err = taints.addTo(&pools[i])
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return pools, refusals, nil
}

// placed is a template with the name of its pool on a node.
type placed struct {
	*Template
	in string
}

// unrendered are the pools without devices and labels.
func unrendered(templates []*Template, node *lifecycle.Object) ([]Pool, []Refusal, error) {
	var all []placed
	for _, t := range templates {
		if t.SharedPool() != "" {
			continue
		}
		name, err := t.poolName(node)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, placed{t, name})
	}
	pools, clash := assemble(all)
	if clash == nil {
		return pools, nil, nil
	}
	standing, refusals := leaveOut(all)
	pools, _ = assemble(standing)
	return pools, refusals, nil
}

// assemble puts templates together. The error names two that clash.
func assemble(all []placed) ([]Pool, error) {
	var pools []Pool
	for _, one := range all {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == one.in })
		if i < 0 {
			i = len(pools)
			pools = append(pools, Pool{Driver: one.Driver, Name: one.in})
		}
		if err := pools[i].add(one.Template); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

// leaveOut goes from the oldest document to the newest, and leaves out each that
// clashes with what stands.
func leaveOut(all []placed) (standing []placed, refusals []Refusal) {
	for _, document := range byAge(all) {
		together := append(slices.Clone(standing), document...)
		slices.SortFunc(together, func(a, b placed) int { return cmp.Compare(a.Name, b.Name) })
		_, clash := assemble(together)
		if clash == nil {
			standing = together
			continue
		}
		refusal := Refusal{Err: fmt.Errorf("%w; %s is left out on this node", clash, document[0].document())}
		for _, one := range document {
			refusal.Templates = append(refusal.Templates, one.Template)
		}
		refusals = append(refusals, refusal)
	}
	return standing, refusals
}

// byAge groups by document, the oldest first.
func byAge(all []placed) [][]placed {
	var documents [][]placed
	places := map[string]int{}
	for _, one := range all {
		key := one.document()
		place, known := places[key]
		if !known {
			place = len(documents)
			places[key] = place
			documents = append(documents, nil)
		}
		documents[place] = append(documents[place], one)
	}
	slices.SortStableFunc(documents, func(a, b []placed) int {
		return a[0].Origin.Created.Compare(b[0].Origin.Created)
	})
	return documents
}
