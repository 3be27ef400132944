package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// Selects reports whether the template is for the node.
func (t *Template) Selects(node *corev1.Node) bool {
	return t.nodes == nil || t.nodes.Match(node)
}

// ForDriver returns the templates that count on a node by their driver: those that select the node
// and have the highest priority, in the order of their names.
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

func compareNames(a, b *Template) int { return cmp.Compare(a.Name, b.Name) }

// Hidden returns the templates that select a node and do not count there, each with one of those
// that ForDriver chose, which has a higher priority.
func Hidden(templates []*Template, chosen map[string][]*Template, node *corev1.Node) map[*Template]*Template {
	hidden := map[*Template]*Template{}
	for _, t := range templates {
		if counts := chosen[t.Driver]; len(counts) > 0 && t.Priority < counts[0].Priority && t.Selects(node) {
			hidden[t] = counts[0]
		}
	}
	return hidden
}

// Refusal is a document whose templates make nothing on a node, since they clash with each other
// or with those of an older document.
type Refusal struct {
	Templates []*Template
	Err       error
}

// Standing makes a driver's pools on a node from the templates that ForDriver chose, without pools
// that nodes share. Templates with the same pool name form one pool, with devices in the order of
// the templates' names. Taints are those of the Node.
//
// Templates that clash are refused by document: the document created later is refused as a whole.
// Documents that are no objects of their own count as the oldest. Of two documents of one age the
// one whose template has the first name stands.
func Standing(templates []*Template, node *lifecycle.Object, taints Taints) ([]Pool, []Refusal, error) {
	pools, refusals, err := mergeDocuments(templates, node)
	if err != nil {
		return nil, nil, err
	}
	for i := range pools {
		if err := pools[i].renderDevices(node); err != nil {
			return nil, nil, err
		}
		if len(taints) > 0 {
			if err := taints.addTo(&pools[i]); err != nil {
				return nil, nil, err
			}
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
			poolNames[t], err = t.newRenderer(node).Render(poolName, map[string]any{})
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
		pools[i].Templates = append(pools[i].Templates, t)
	}
	return pools, nil
}

// cannotRender is the format of a template's error.
const cannotRender = "render template %s: %w"

// renderDevices adds the labels and devices that the templates of the pool yield for a Node, or for none.
func (p *Pool) renderDevices(node *lifecycle.Object) error {
	for _, t := range p.Templates {
		renderer, labels := t.newRenderer(node), map[string]string{}
		for i := range t.content.labels {
			label := &t.content.labels[i]
			value, err := renderer.Render(&label.Text, map[string]any{})
			if err != nil {
				return fmt.Errorf(cannotRender, t.Name, err)
			}
			if validation.IsLabelValue(value) {
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
	if t.pod != nil {
		renderer.Shared = append(renderer.Shared, gotemplate.Shared{Name: "DriverPod", Get: t.pod.Data})
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
	data := d.group.dataOf(d.index)
	for i := range values {
		value := &values[i]
		text, err := renderer.Render(&value.Text, data)
		if err == nil && strings.Contains(text, gotemplate.NoValue) {
			err = missingField(&value.Text)
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
