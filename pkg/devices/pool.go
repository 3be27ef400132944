package devices

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Pool is a resource pool that should exist.
type Pool struct {
	// Driver and Name identify the pool in the cluster.
	Driver, Name string
	// SharedWith is nil for a node's own pool.
	SharedWith *v1alpha1.SharedWith
	// Owner is the object that owns a pool that is not a node's own, if any does.
	Owner *metav1.OwnerReference
	// Templates are the templates that make the pool, in the order of their names.
	Templates []*Template
	// Devices are the devices in the order of the templates.
	Devices []resourcev1.Device
	// CounterSets are what the devices consume from.
	CounterSets []resourcev1.CounterSet
	// PartitionTypeAttribute and SkipNodeOperations are those of all slices.
	PartitionTypeAttribute *resourcev1.FullyQualifiedName
	SkipNodeOperations     []resourcev1.SkipNodeOperation

	// split are the names of the devices in each slice, where a template says so.
	split [][]string
	// labels are what each of the templates says of labels.
	labels []map[string]string
}

// ForDriver picks the templates that count on a node: per driver those that
// select the node and have the highest priority, in the order of their names.
func ForDriver(templates []*Template, node *corev1.Node) map[string][]*Template {
	byDriver := map[string][]*Template{}
	for _, t := range templates {
		if !t.Selects(node) {
			continue
		}
		chosen := byDriver[t.Driver]
		if len(chosen) > 0 && t.Priority < chosen[0].Priority {
			continue
		}
		if len(chosen) > 0 && t.Priority > chosen[0].Priority {
			chosen = nil
		}
		byDriver[t.Driver] = append(chosen, t)
	}
	for _, chosen := range byDriver {
		slices.SortFunc(chosen, func(a, b *Template) int { return cmp.Compare(a.Name, b.Name) })
	}
	return byDriver
}

// Hidden are the templates that select a node and do not count there, each with
// one of those that ForDriver chose and that have a higher priority.
func Hidden(templates []*Template, chosen map[string][]*Template, node *corev1.Node) map[*Template]*Template {
	var hidden map[*Template]*Template
	for _, t := range templates {
		counts := chosen[t.Driver]
		if len(counts) == 0 || t.Priority >= counts[0].Priority || !t.Selects(node) {
			continue
		}
		if hidden == nil {
			hidden = map[*Template]*Template{}
		}
		hidden[t] = counts[0]
	}
	return hidden
}

// Pools makes a driver's pools on a node from the templates that ForDriver
// chose, but for those that nodes share. Templates with the same pool name form
// one pool, their devices in the order of the templates' names. Two devices of
// one name are an error. The taints of the node's annotation are on the devices.
func Pools(templates []*Template, node *lifecycle.Object) ([]Pool, error) {
	taints, err := TaintsOf(node)
	if err != nil {
		return nil, err
	}
	pools, refusals, err := Standing(templates, node, taints)
	if len(refusals) > 0 {
		err = refusals[0].Err
	}
	if err != nil {
		return nil, err
	}
	return pools, nil
}

// NewSharedPool makes the pool of a template that nodes share.
func (t *Template) NewSharedPool() (*Pool, error) {
	pool := &Pool{Driver: t.Driver, Name: t.SharedPool(), SharedWith: t.pool.SharedWith, Owner: t.pool.Owner}
	return pool, errors.Join(pool.add(t), pool.render(nil))
}

// owner is the template of the pool that a device is from, or nil.
func (p *Pool) owner(device string) *Template {
	i := slices.IndexFunc(p.Templates, func(t *Template) bool { return t.has(device) })
	if i < 0 {
		return nil
	}
	return p.Templates[i]
}

// add adds what all pools of a template have.
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
	p.CounterSets = append(p.CounterSets, t.pool.CounterSets...)
	p.split = append(p.split, t.pool.split...)
	p.PartitionTypeAttribute, p.SkipNodeOperations = t.pool.PartitionTypeAttribute, t.pool.SkipNodeOperations
	return nil
}

// render adds what the templates yield for a node, or for none.
func (p *Pool) render(node *lifecycle.Object) error {
	for _, t := range p.Templates {
		err := t.within(node, func(v *view) error {
			labels, err := renderLabels(t.labels, v)
			if err != nil {
				return err
			}
			p.labels, p.Devices = append(p.labels, labels), slices.Grow(p.Devices, len(t.order))
			for _, at := range t.order {
				device, err := t.renderDevice(at, v)
				if err != nil {
					return err
				}
				p.Devices = append(p.Devices, device)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// disjoint refuses devices that are there from another template. It names all
// that are from the first of these.
func (p *Pool) disjoint(t *Template) error {
	var names []string
	var first *Template
	for _, at := range t.order {
		name := t.device(at).Name
		other := p.owner(name)
		if other != nil && (first == nil || other == first) {
			first, names = other, append(names, name)
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
	for _, set := range other.pool.CounterSets {
		if slices.ContainsFunc(one.pool.CounterSets, func(s resourcev1.CounterSet) bool { return s.Name == set.Name }) {
			return p.clash(one, other, "have the counter set "+set.Name, "rename one")
		}
	}
	if !apiequality.Semantic.DeepEqual(one.pool.PartitionTypeAttribute, other.pool.PartitionTypeAttribute) {
		return p.clash(one, other, "say different things of partitionTypeAttribute", "make them equal")
	}
	if !slices.Equal(one.pool.SkipNodeOperations, other.pool.SkipNodeOperations) {
		return p.clash(one, other, "say different things of skipNodeOperations", "make them equal")
	}
	return nil
}

// clash is the error of two templates. What is not written as a template has no
// poolName and no priority to set.
func (p *Pool) clash(one, other *Template, what, fix string) error {
	if one.Origin.Document != "" && other.Origin.Document != "" {
		return fmt.Errorf("%s and %s both %s in pool %s of driver %s: %s", one.title(), other.title(), what, p.Name, p.Driver, fix)
	}
	return fmt.Errorf("%s and %s both %s in pool %s of driver %s: %s, or set poolName or priority", one.title(), other.title(), what, p.Name, p.Driver, fix)
}
