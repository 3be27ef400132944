package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// Pool is a resource pool that should exist.
type Pool struct {
	// Driver and Name identify the pool in the cluster.
	Driver, Name string
	// SharedWith is nil for a node's own pool.
	SharedWith *v1alpha1.SharedWith
	// Templates are in the order of their names.
	Templates []*Template
	// Owner is the object that owns a pool that nodes share, or nil.
	Owner *metav1.OwnerReference
	// CounterSets are those that the devices consume from, and Devices the devices, in the order of
	// the templates.
	CounterSets []resourcev1.CounterSet
	Devices     []resourcev1.Device
	// PartitionTypeAttribute and SkipNodeOperations are those of all slices.
	PartitionTypeAttribute *resourcev1.FullyQualifiedName
	SkipNodeOperations     []resourcev1.SkipNodeOperation

	labels []map[string]string
}

// NodeTemplates are the templates that select a node.
type NodeTemplates struct {
	// ByDriver has those that count there, by their driver: those with the highest priority, in the
	// order of their names.
	ByDriver map[string][]*Template
	// Hidden has the others, each with one of the driver's that count. It is nil for none.
	Hidden map[*Template]*Template
}

// SelectForNode selects the templates of a node.
func SelectForNode(templates []*Template, node *corev1.Node) NodeTemplates {
	selected := NodeTemplates{ByDriver: map[string][]*Template{}}
	var outranked []*Template
	for _, t := range templates {
		if !t.Selects(node) {
			continue
		}
		switch counting := selected.ByDriver[t.Driver]; {
		case len(counting) == 0 || t.Priority == counting[0].Priority:
			selected.ByDriver[t.Driver] = append(counting, t)
		case t.Priority > counting[0].Priority:
			outranked = append(outranked, counting...)
			selected.ByDriver[t.Driver] = []*Template{t}
		default:
			outranked = append(outranked, t)
		}
	}
	for _, counting := range selected.ByDriver {
		slices.SortFunc(counting, compareNames)
	}
	if len(outranked) > 0 {
		selected.Hidden = map[*Template]*Template{}
	}
	for _, t := range outranked {
		selected.Hidden[t] = selected.ByDriver[t.Driver][0]
	}
	return selected
}

func compareNames(a, b *Template) int { return cmp.Compare(a.Name, b.Name) }

// Refusal is a document whose templates make nothing on a node, since they clash with each other
// or with those of an older document.
type Refusal struct {
	Templates []*Template
	Err       error
}

// PoolsForNode renders a driver's pools on a node, without pools that nodes share. The templates are
// those that count there. Templates with the same pool name form one pool, with devices in the order of
// the templates' names. Taints are those of the Node.
//
// Templates that clash are refused by document: the document created later is refused as a whole.
// Documents that are no objects of their own count as the oldest. Of two documents of one age the
// one whose template has the first name stands.
func PoolsForNode(templates []*Template, node *lifecycle.Object, taints Taints) ([]Pool, []Refusal, error) {
	pools, refusals, err := mergeDocuments(templates, node)
	if err != nil {
		return nil, nil, err
	}
	for i := range pools {
		if err := pools[i].renderDevices(node); err != nil {
			return nil, nil, err
		}
		if err := taints.addTo(&pools[i]); err != nil {
			return nil, nil, err
		}
	}
	return pools, refusals, nil
}

// mergeDocuments makes pools without devices and labels. It goes from the oldest document to the
// newest, and refuses each that clashes with those before it.
func mergeDocuments(templates []*Template, node *lifecycle.Object) (pools []Pool, refusals []Refusal, err error) {
	var documents [][]*Template
	poolNames := map[*Template]string{}
	for _, t := range templates {
		if t.SharedWith != nil {
			continue
		}
		poolName := &t.content.poolName
		if poolNames[t] = node.GetName(); poolName.Source != defaults.PoolName {
			poolNames[t], err = t.newRenderer(node).Render(poolName, nil)
		}
		if err == nil {
			err = validation.ValidatePoolName(poolNames[t], poolName.Path).ToAggregate()
		}
		if err != nil {
			return nil, nil, fmt.Errorf(cannotRender, t.Name, err)
		}
		i := slices.IndexFunc(documents, func(d []*Template) bool { return documentOf(d[0]) == documentOf(t) })
		if i < 0 {
			i = len(documents)
			documents = append(documents, nil)
		}
		documents[i] = append(documents[i], t)
	}
	slices.SortStableFunc(documents, func(a, b []*Template) int { return a[0].Origin.Created.Compare(b[0].Origin.Created) })
	var standing []*Template
	for _, document := range documents {
		together := slices.Concat(standing, document)
		slices.SortFunc(together, compareNames)
		merged, clash := mergeTemplates(together, poolNames)
		if clash != nil {
			refusals = append(refusals, Refusal{document, fmt.Errorf("%w; %s is left out on this node", clash, documentOf(document[0]))})
			continue
		}
		pools, standing = merged, together
	}
	return pools, refusals, nil
}

// mergeTemplates makes pools of templates by their pool names. The error names two templates that
// clash.
func mergeTemplates(templates []*Template, poolNames map[*Template]string) ([]Pool, error) {
	var pools []Pool
	for _, t := range templates {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == poolNames[t] })
		if i < 0 {
			i = len(pools)
			pools = append(pools, Pool{
				Driver: t.Driver, Name: poolNames[t], SharedWith: t.SharedWith,
				PartitionTypeAttribute: t.PartitionTypeAttribute, SkipNodeOperations: t.SkipNodeOperations,
			})
		} else if err := pools[i].checkClashes(t); err != nil {
			return nil, err
		}
		pools[i].Templates, pools[i].CounterSets = append(pools[i].Templates, t), append(pools[i].CounterSets, t.content.counterSets...)
	}
	return pools, nil
}

// checkClashes refuses a template that does not go into the pool with those that are there.
func (p *Pool) checkClashes(t *Template) error {
	var other *Template
	var names []string // of devices that are also from the other template
	for _, device := range t.content.devices {
		if owner := p.findTemplate(device.Name); owner != nil && (other == nil || owner == other) {
			other, names = owner, append(names, device.Name)
		}
	}
	clash, fix := "", "rename one"
	switch len(names) {
	case 0:
	case 1:
		clash = "have the device " + names[0]
	default:
		clash = "have the devices " + gotemplate.ListSome(names)
	}
	for i := 0; clash == "" && i < len(p.Templates); i++ {
		other = p.Templates[i]
		switch j := slices.IndexFunc(t.content.counterSets, func(set resourcev1.CounterSet) bool { return other.content.setNames[set.Name] != nil }); {
		case j >= 0:
			clash = "have the counter set " + t.content.counterSets[j].Name
		case !apiequality.Semantic.DeepEqual(other.PartitionTypeAttribute, t.PartitionTypeAttribute):
			clash, fix = "say different things of partitionTypeAttribute", "make them equal"
		case !slices.Equal(other.SkipNodeOperations, t.SkipNodeOperations):
			clash, fix = "say different things of skipNodeOperations", "make them equal"
		}
	}
	if clash == "" {
		return nil
	}
	// A document of another kind has no poolName and no priority to set.
	if other.Origin.Document == "" || t.Origin.Document == "" {
		fix += ", or set poolName or priority"
	}
	return fmt.Errorf("%s and %s both %s in pool %s of driver %s: %s", titleOf(other), titleOf(t), clash, p.Name, p.Driver, fix)
}

// findTemplate returns the template of the pool that a device is from, or nil.
func (p *Pool) findTemplate(device string) *Template {
	i := slices.IndexFunc(p.Templates, func(t *Template) bool { return t.content.byName[device] != nil })
	if i < 0 {
		return nil
	}
	return p.Templates[i]
}

// NewSharedPool makes the pool of a template that nodes share.
func (t *Template) NewSharedPool() (*Pool, error) {
	pools, err := mergeTemplates([]*Template{t}, map[*Template]string{t: t.SharedPool()})
	if err != nil {
		return nil, err
	}
	pool := &pools[0]
	if uid := t.content.uid; uid != "" {
		pool.Owner = &metav1.OwnerReference{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ResourcePoolTemplateKind, Name: t.Name, UID: uid, Controller: new(true)}
	}
	return pool, pool.renderDevices(nil)
}

// cannotRender is the format of a template's error.
const cannotRender = "render template %s: %w"

// renderDevices adds the labels and devices that the templates of the pool yield for a Node, or for none.
func (p *Pool) renderDevices(node *lifecycle.Object) error {
	for _, t := range p.Templates {
		renderer, labels := t.newRenderer(node), map[string]string{}
		for i := range t.content.labels {
			label := &t.content.labels[i]
			value, err := renderer.Render(&label.Text, nil)
			if err != nil {
				return fmt.Errorf(cannotRender, t.Name, err)
			}
			if len(content.IsLabelValue(value)) == 0 {
				labels[label.key] = value
			}
		}
		p.labels, p.Devices = append(p.labels, labels), slices.Grow(p.Devices, len(t.content.devices))
		for _, d := range t.content.devices {
			device, err := d.renderDevice(renderer)
			if err != nil {
				return fmt.Errorf(cannotRender, t.Name, err)
			}
			p.Devices = append(p.Devices, device)
		}
	}
	return nil
}

// newRenderer makes a renderer of the template for a Node, or for none.
func (t *Template) newRenderer(node *lifecycle.Object) *gotemplate.Renderer {
	texts := 1 + len(t.content.labels)
	for _, g := range t.content.groups {
		texts += len(g.devices) * len(g.values)
	}
	renderer := &gotemplate.Renderer{Texts: texts, Shared: []gotemplate.Shared{{Name: "Node"}}}
	if node != nil {
		renderer.Shared[0].Get = node.Decoded
	}
	if t.Pod.Data != nil {
		renderer.Shared = append(renderer.Shared, gotemplate.Shared{Name: "DriverPod", Get: t.Pod.Data})
	}
	return renderer
}

// renderDevice makes the device for the Node of the renderer. Devices of all Nodes share maps in which
// nothing is rendered.
func (d *device) renderDevice(renderer *gotemplate.Renderer) (resourcev1.Device, error) {
	rendered, values := d.Device, d.group.values
	if len(values) == 0 {
		return rendered, nil
	}
	if rendered.Attributes != nil { // with room for the values, so that the map does not grow for each device of a fleet
		rendered.Attributes = make(map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, len(d.Attributes)+len(values))
		maps.Copy(rendered.Attributes, d.Attributes)
	}
	for i := range values {
		value := &values[i]
		text, err := renderer.Render(&value.Text, d.data)
		if err == nil && strings.Contains(text, gotemplate.NoValue) {
			err = MissingField(&value.Text)
		} else if err == nil {
			if err = value.set(&rendered, text); err != nil {
				err = field.Invalid(value.Path, text, err.Error())
			}
		}
		if err != nil {
			return rendered, fmt.Errorf("device %s: %w", rendered.Name, err)
		}
	}
	return rendered, nil
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
		slices.ContainsFunc(of.CounterSets, func(set resourcev1.CounterSet) bool { return t.content.setNames[set.Name] != nil })
}
