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
	if t.Origin.Part == "" {
		return t.document()
	}
	return t.Origin.Part + " of " + t.document()
}

// document is how users know the document that the template is from.
func (t *Template) document() string {
	return cmp.Or(t.Origin.Document, "template "+t.Name)
}

// Refusal is a document whose templates have no place on a node, since they
// clash with each other or with those of an older document.
type Refusal struct {
	Templates []*Template
	Err       error
}

// Standing makes a driver's pools on a node from the templates that ForDriver chose, but
// for those that nodes share. Templates with the same pool name form one pool, their
// devices in the order of the templates' names. Taints are those of the node.
//
// Of templates that clash it leaves out all of the document that was created later; the
// others remain. The older document is the one that was created first; those that are no
// objects of their own count as older than any, and of two that are of the same age the
// one whose template has the first name.
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

// unrendered are the pools without devices and labels. It goes from the oldest document
// to the newest, and leaves out each that clashes with what stands.
func unrendered(templates []*Template, node *lifecycle.Object) (pools []Pool, refusals []Refusal, err error) {
	names := map[*Template]string{}
	own := slices.DeleteFunc(slices.Clone(templates), func(t *Template) bool { return t.SharedWith != nil })
	for _, t := range own {
		if names[t], err = t.poolOn(node); err != nil {
			return nil, nil, err
		}
	}
	var standing []*Template
	for _, document := range byAge(own) {
		together := slices.Concat(standing, document)
		slices.SortFunc(together, compareNames)
		made, clash := assemble(together, names)
		if clash != nil {
			refusals = append(refusals, Refusal{document, fmt.Errorf("%w; %s is left out on this node", clash, document[0].document())})
			continue
		}
		pools, standing = made, together
	}
	return pools, refusals, nil
}

// assemble puts templates together. The error names two that clash.
func assemble(templates []*Template, names map[*Template]string) ([]Pool, error) {
	var pools []Pool
	for _, t := range templates {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == names[t] })
		if i < 0 {
			i = len(pools)
			pools = append(pools, t.newPool(names[t]))
		}
		if err := pools[i].add(t); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

// byAge groups by document, the oldest first.
func byAge(templates []*Template) [][]*Template {
	var documents [][]*Template
	for _, t := range templates {
		i := slices.IndexFunc(documents, func(d []*Template) bool { return d[0].document() == t.document() })
		if i < 0 {
			i = len(documents)
			documents = append(documents, nil)
		}
		documents[i] = append(documents[i], t)
	}
	slices.SortStableFunc(documents, func(a, b []*Template) int {
		return a[0].Origin.Created.Compare(b[0].Origin.Created)
	})
	return documents
}
