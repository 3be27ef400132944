package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Pool is a resource pool that should exist.
type Pool struct {
	// Driver and Name identify the pool in the cluster.
	Driver, Name string
	// SharedWith is nil for a node's own pool.
	SharedWith *v1alpha1.SharedWith
	// Templates are the templates that make the pool, in the order of their names.
	Templates []*Template
	// Devices are the devices in the order of the templates.
	Devices []resourcev1.Device
	// PartitionTypeAttribute and SkipNodeOperations are those of all slices.
	PartitionTypeAttribute *resourcev1.FullyQualifiedName
	SkipNodeOperations     []resourcev1.SkipNodeOperation

	// labels are what each of the templates says of labels.
	labels []map[string]string
}

// Owner is the object that owns a pool that nodes share, if any does.
func (p *Pool) Owner() *metav1.OwnerReference {
	t := p.Templates[0]
	if t.uid == "" {
		return nil
	}
	return &metav1.OwnerReference{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ResourcePoolTemplateKind, Name: t.Name, UID: t.uid, Controller: new(true),
	}
}

// CounterSets are what the devices consume from.
func (p *Pool) CounterSets() []resourcev1.CounterSet {
	var all []resourcev1.CounterSet
	for _, t := range p.Templates {
		all = append(all, t.counterSets...)
	}
	return all
}

// ForDriver picks the templates that count on a node: per driver those that
// select the node and have the highest priority, in the order of their names.
func ForDriver(templates []*Template, node *corev1.Node) map[string][]*Template {
	byDriver := map[string][]*Template{}
	for _, t := range templates {
		switch chosen := byDriver[t.Driver]; {
		case !t.Selects(node):
		case len(chosen) == 0 || t.Priority > chosen[0].Priority:
			byDriver[t.Driver] = []*Template{t}
		case t.Priority == chosen[0].Priority:
			byDriver[t.Driver] = append(chosen, t)
		}
	}
	for _, chosen := range byDriver {
		slices.SortFunc(chosen, compareNames)
	}
	return byDriver
}

func compareNames(a, b *Template) int {
	return cmp.Compare(a.Name, b.Name)
}

// Hidden are the templates that select a node and do not count there, each with
// one of those that ForDriver chose and that have a higher priority.
func Hidden(templates []*Template, chosen map[string][]*Template, node *corev1.Node) map[*Template]*Template {
	hidden := map[*Template]*Template{}
	for _, t := range templates {
		if counts := chosen[t.Driver]; len(counts) > 0 && t.Priority < counts[0].Priority && t.Selects(node) {
			hidden[t] = counts[0]
		}
	}
	return hidden
}

// NewSharedPool makes the pool of a template that nodes share.
func (t *Template) NewSharedPool() (*Pool, error) {
	pool := t.newPool(t.SharedPool())
	pool.Templates = []*Template{t}
	return &pool, pool.render(nil)
}

// owner is the template of the pool that a device is from, or nil.
func (p *Pool) owner(device string) *Template {
	i := slices.IndexFunc(p.Templates, func(t *Template) bool { return t.has(device) })
	if i < 0 {
		return nil
	}
	return p.Templates[i]
}

// add adds a template, without its devices.
func (p *Pool) add(t *Template) error {
	if err := p.disjoint(t); err != nil {
		return err
	}
	for _, other := range p.Templates {
		if err := p.compatible(other, t); err != nil {
			return err
		}
	}
	p.Templates = append(p.Templates, t)
	return nil
}

// render adds what the templates yield for a node, or for none.
func (p *Pool) render(node *lifecycle.Object) error {
	for _, t := range p.Templates {
		r := t.newRendering(node)
		labels, err := t.renderLabels(r)
		p.labels, p.Devices = append(p.labels, labels), slices.Grow(p.Devices, len(t.devices))
		for i := 0; err == nil && i < len(t.devices); i++ {
			var device resourcev1.Device
			device, err = t.devices[i].render(r)
			p.Devices = append(p.Devices, device)
		}
		if err != nil {
			return fmt.Errorf(cannotRender, t.Name, err)
		}
	}
	return nil
}

// disjoint refuses devices that are there from another template. It names all
// that are from the first of these.
func (p *Pool) disjoint(t *Template) error {
	var names []string
	var first *Template
	for _, device := range t.devices {
		other := p.owner(device.Name)
		if other != nil && (first == nil || other == first) {
			first, names = other, append(names, device.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	noun := "the device "
	if len(names) > 1 {
		noun = "the devices "
	}
	return p.clash(first, t, "have "+noun+listed(names), "rename one")
}

// compatible refuses two templates that cannot be in one pool.
func (p *Pool) compatible(one, other *Template) error {
	switch i := slices.IndexFunc(other.counterSets, one.hasSet); {
	case i >= 0:
		return p.clash(one, other, "have the counter set "+other.counterSets[i].Name, "rename one")
	case !apiequality.Semantic.DeepEqual(one.PartitionTypeAttribute, other.PartitionTypeAttribute):
		return p.clash(one, other, "say different things of partitionTypeAttribute", "make them equal")
	case !slices.Equal(one.SkipNodeOperations, other.SkipNodeOperations):
		return p.clash(one, other, "say different things of skipNodeOperations", "make them equal")
	}
	return nil
}

// clash is the error of two templates. What is not written as a template has no
// poolName and no priority to set.
func (p *Pool) clash(one, other *Template, what, fix string) error {
	if one.Origin.Document == "" || other.Origin.Document == "" {
		fix += ", or set poolName or priority"
	}
	return fmt.Errorf("%s and %s both %s in pool %s of driver %s: %s", one.title(), other.title(), what, p.Name, p.Driver, fix)
}

// renderLabels leaves out what cannot be the value of a label.
func (t *Template) renderLabels(r *rendering) (map[string]string, error) {
	labels := map[string]string{}
	for i := range t.labels {
		value, err := t.labels[i].text(r, map[string]any{})
		if err != nil {
			return nil, err
		}
		if validation.IsLabelValue(value) {
			labels[t.labels[i].key] = value
		}
	}
	return labels, nil
}

// Labels are those of a slice of the pool: what the templates say that it has
// something of. Where these differ about a label, the slice goes without it.
func (p *Pool) Labels(of *Slice) map[string]string {
	labels, disputed := map[string]string{}, map[string]bool{}
	for i, t := range p.Templates {
		if len(p.labels[i]) == 0 || !p.Holds(of, t) {
			continue
		}
		for key, value := range p.labels[i] {
			other, has := labels[key]
			disputed[key] = disputed[key] || has && other != value
			labels[key] = value
		}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return disputed[key] })
	return labels
}

// Holds reports whether a slice of the pool has devices or counter sets of a
// template.
func (p *Pool) Holds(of *Slice, t *Template) bool {
	return len(p.Templates) == 1 ||
		slices.ContainsFunc(of.Devices, func(d resourcev1.Device) bool { return t.has(d.Name) }) ||
		slices.ContainsFunc(of.CounterSets, t.hasSet)
}

func (t *Template) hasSet(set resourcev1.CounterSet) bool {
	return slices.ContainsFunc(t.counterSets, func(own resourcev1.CounterSet) bool { return own.Name == set.Name })
}
