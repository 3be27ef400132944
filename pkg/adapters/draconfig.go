package adapters

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// PoolLabel is the label of slices that names the pool of the DRAConfig that they
// are of.
const PoolLabel = "test.karpenter.sh/pool"

type draConfigSpec struct {
	Driver string            `json:"driver"`
	Pools  []json.RawMessage `json:"pools"`
}

// draPool says what slices the nodes have that it selects.
type draPool struct {
	Name              string            `json:"name"`
	NodeSelectorTerms []json.RawMessage `json:"nodeSelectorTerms"`
	ResourceSlices    []json.RawMessage `json:"resourceSlices"`
}

type draSlice struct {
	Devices []json.RawMessage `json:"devices"`
}

// draConfig adapts a DRAConfig.
type draConfig struct {
	adapter
	name, driver string
	// names maps the names of pools to their paths.
	names map[string]*field.Path
}

// DRAConfig adapts a DRAConfig of Karpenter. Each of its pools becomes a
// template, with a slice for each entry of resourceSlices. All that match a node
// form one pool of that node, <driver>/<node>: to the scheduler they are one, so
// they have one generation and one number of slices.
//
// A term of nodeSelectorTerms with nothing in it selects no node, as in
// Kubernetes; it is left out, and a pool without other terms too. Two devices of
// one name in a pool are refused. In two pools they may be, unless both select a
// node.
func DRAConfig(source *unstructured.Unstructured) (*Adapted, error) {
	c := &draConfig{name: source.GetName(), names: map[string]*field.Path{}}
	path := field.NewPath("spec")
	data, err := json.Marshal(source.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	var spec draConfigSpec
	if !c.problems.decode(data, &spec, path) {
		return nil, c.problems.err()
	}
	if spec.Driver == "" {
		c.problems.addErrors(field.Required(path.Child("driver"), "the name of the DRA driver, for example gpu.example.com"))
	}
	if len(spec.Pools) == 0 {
		c.problems.addErrors(field.Required(path.Child("pools"), "give at least one pool"))
	}
	c.driver = spec.Driver
	for i, raw := range spec.Pools {
		c.addPool(raw, path.Child("pools").Index(i))
	}
	return c.finish()
}

func (c *draConfig) addPool(raw json.RawMessage, path *field.Path) {
	var given draPool
	if !c.problems.decode(raw, &given, path) || !c.takeName(given.Name, path.Child("name")) {
		return
	}
	d := newDraft(templateName("draconfig-"+c.name, given.Name), c.driver, TemplatePriority)
	for _, field := range []string{"spec.driver", "spec.sliceLabels[test.karpenter.sh/driver]"} {
		d.origins[field] = "spec.driver"
	}
	d.template.Spec.PoolName = strings.ToLower(c.driver) + "/" + v1alpha1.DefaultPoolName
	d.template.Spec.SliceLabels = map[string]string{
		"test.karpenter.sh/managed-by": "dra-kwok-driver",
		"test.karpenter.sh/node":       v1alpha1.DefaultPoolName,
		PoolLabel:                      given.Name,
		"test.karpenter.sh/driver":     c.driver,
	}
	c.addTerms(d, given.NodeSelectorTerms, path.Child("nodeSelectorTerms"))
	if len(given.ResourceSlices) == 0 {
		c.problems.addErrors(field.Required(path.Child("resourceSlices"), "give at least one slice with devices"))
	}
	for i, raw := range given.ResourceSlices {
		c.addSlice(d, raw, path.Child("resourceSlices").Index(i))
	}
	if d.template.Spec.NodeSelector != nil {
		c.drafts = append(c.drafts, d)
	}
}

// takeName refuses pools without a name, and with one that is no label or taken.
func (c *draConfig) takeName(name string, path *field.Path) bool {
	if name == "" {
		c.problems.addErrors(field.Required(path, "the name of the pool, for example h100-pool"))
		return false
	}
	if errs := v1alpha1.ValidateLabel(name, path); len(errs) > 0 {
		c.problems.addErrors(errs...)
		return false
	}
	return c.problems.takeName(c.names, name, path)
}

// addTerms adds the terms that select nodes.
func (c *draConfig) addTerms(d *draft, given []json.RawMessage, path *field.Path) {
	if len(given) == 0 {
		c.problems.addErrors(field.Required(path, "give at least one term with matchExpressions or matchFields"))
	}
	for i, raw := range given {
		var term corev1.NodeSelectorTerm
		if !c.problems.decode(raw, &term, path.Index(i)) {
			d.incomplete = true
			continue
		}
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			c.change("%s is left out, since a term with nothing in it selects no node", path.Index(i))
			continue
		}
		if d.template.Spec.NodeSelector == nil {
			d.template.Spec.NodeSelector = &corev1.NodeSelector{}
		}
		selector := d.template.Spec.NodeSelector
		d.from(terms.Index(len(selector.NodeSelectorTerms)), path.Index(i))
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
}

func (c *draConfig) addSlice(d *draft, raw json.RawMessage, path *field.Path) {
	var given draSlice
	if !c.problems.decode(raw, &given, path) {
		d.incomplete = true
		return
	}
	if len(given.Devices) == 0 {
		c.problems.addErrors(field.Required(path.Child("devices"), "give at least one device"))
		d.incomplete = true
		return
	}
	var devices []v1alpha1.DeviceTemplate
	for i, raw := range given.Devices {
		at := path.Child("devices").Index(i)
		device, is := c.problems.device(raw, at)
		if !is {
			d.incomplete = true
		}
		if device.ConsumesCounters != nil {
			c.problems.addErrors(field.Forbidden(at.Child("consumesCounters"), "a DRAConfig has no sharedCounters that could be consumed; a ResourcePoolTemplate does"))
			device.ConsumesCounters = nil
		}
		devices = append(devices, device)
	}
	d.addSlice(&c.problems, devices, path)
}
