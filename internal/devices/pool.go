package devices

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
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

	// labels are those of each template.
	labels []map[string]string
}

// Owner refers to the object that owns a pool that nodes share, or is nil.
func (p *Pool) Owner() *metav1.OwnerReference {
	t := p.Templates[0]
	if t.content.uid == "" {
		return nil
	}
	return &metav1.OwnerReference{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ResourcePoolTemplateKind, Name: t.Name, UID: t.content.uid, Controller: new(true),
	}
}

// CounterSets returns the counter sets that the devices consume from.
func (p *Pool) CounterSets() []resourcev1.CounterSet {
	var all []resourcev1.CounterSet
	for _, t := range p.Templates {
		all = append(all, t.content.counterSets...)
	}
	return all
}

// NewSharedPool makes the pool of a template that nodes share.
func (t *Template) NewSharedPool() (*Pool, error) {
	pools, err := mergeTemplates([]*Template{t}, map[*Template]string{t: t.SharedPool()})
	if err != nil {
		return nil, err
	}
	return &pools[0], pools[0].renderDevices(nil)
}

// findTemplate returns the template of the pool that a device is from, or nil.
func (p *Pool) findTemplate(device string) *Template {
	i := slices.IndexFunc(p.Templates, func(t *Template) bool { return t.content.byName[device] != nil })
	if i < 0 {
		return nil
	}
	return p.Templates[i]
}

// checkClashes refuses a template that does not go into the pool with those that are there.
func (p *Pool) checkClashes(t *Template) error {
	var first *Template
	var names []string // of devices that are also from the first template
	for _, device := range t.content.devices {
		if owner := p.findTemplate(device.Name); owner != nil && (first == nil || owner == first) {
			first, names = owner, append(names, device.Name)
		}
	}
	switch len(names) {
	case 0:
	case 1:
		return p.clashError(first, t, "have the device "+names[0], "rename one")
	default:
		return p.clashError(first, t, "have the devices "+gotemplate.ListSome(names), "rename one")
	}
	for _, other := range p.Templates {
		switch i := slices.IndexFunc(t.content.counterSets, func(set resourcev1.CounterSet) bool { return other.content.hasCounterSet(set.Name) }); {
		case i >= 0:
			return p.clashError(other, t, "have the counter set "+t.content.counterSets[i].Name, "rename one")
		case !apiequality.Semantic.DeepEqual(other.PartitionTypeAttribute, t.PartitionTypeAttribute):
			return p.clashError(other, t, "say different things of partitionTypeAttribute", "make them equal")
		case !slices.Equal(other.SkipNodeOperations, t.SkipNodeOperations):
			return p.clashError(other, t, "say different things of skipNodeOperations", "make them equal")
		}
	}
	return nil
}

// clashError is the error of two templates. A document of another kind has no poolName and no
// priority to set.
func (p *Pool) clashError(one, other *Template, what, fix string) error {
	if one.Origin.Document == "" || other.Origin.Document == "" {
		fix += ", or set poolName or priority"
	}
	return fmt.Errorf("%s and %s both %s in pool %s of driver %s: %s", titleOf(one), titleOf(other), what, p.Name, p.Driver, fix)
}

// Labels returns the labels of a slice: those of the templates of which it holds something. It has
// no label for which two of them have different values.
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

// Holds reports whether a slice of the pool has devices or counter sets of a template.
func (p *Pool) Holds(of *Slice, t *Template) bool {
	return len(p.Templates) == 1 ||
		slices.ContainsFunc(of.Devices, func(d resourcev1.Device) bool { return t.content.byName[d.Name] != nil }) ||
		slices.ContainsFunc(of.CounterSets, func(set resourcev1.CounterSet) bool { return t.content.hasCounterSet(set.Name) })
}
