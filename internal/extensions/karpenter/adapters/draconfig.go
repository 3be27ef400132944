package adapters

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// poolLabel is the label of slices that names their pool in the DRAConfig.
const poolLabel = "test.karpenter.sh/pool"

type draConfigSpec struct {
	Driver string    `json:"driver"`
	Pools  []draPool `json:"pools"`
}

// draPool has the slices of the nodes that it selects.
type draPool struct {
	Name              string                    `json:"name"`
	NodeSelectorTerms []corev1.NodeSelectorTerm `json:"nodeSelectorTerms"`
	ResourceSlices    []draSlice                `json:"resourceSlices"`
}

type draSlice struct {
	Devices []v1alpha1.DeviceTemplate `json:"devices"`
}

// draConfig adapts a DRAConfig.
type draConfig struct {
	adapter
	name, driver string
}

// DRAConfig adapts a DRAConfig of Karpenter. Each of its pools becomes a template, with a slice for
// each entry of resourceSlices. All pools that select a node form one pool of that node,
// <driver>/<node>: the scheduler sees one pool, with one generation and one number of slices.
//
// As in Kubernetes, an empty term of nodeSelectorTerms selects no node. It is left out, and so is a
// pool without other terms. Two devices in a pool must not have the same name. Two pools may have
// devices of the same name, unless both pools select a node.
func DRAConfig(source *unstructured.Unstructured) (*config.Adapted, error) {
	c := &draConfig{adapter: newAdapter(), name: source.GetName()}
	var spec draConfigSpec
	c.decodeSpec(source, &spec)
	path := field.NewPath("spec")
	c.requireField(spec.Driver != "", path.Child("driver"), exampleDriver)
	c.requireField(len(spec.Pools) > 0, path.Child("pools"), "give at least one pool")
	c.driver = spec.Driver
	for i := range spec.Pools {
		c.addPool(&spec.Pools[i], path.Child("pools").Index(i))
	}
	return c.validateDrafts()
}

func (c *draConfig) addPool(given *draPool, path *field.Path) {
	if !c.takeName(given.Name, path.Child("name")) {
		return
	}
	d := newDraft(templateName("draconfig-"+c.name, given.Name), c.driver, templatePriority)
	d.incomplete = c.misfits.Hides(path.String())
	for _, field := range []string{"spec.driver", "spec.sliceLabels[test.karpenter.sh/driver]"} {
		d.origins[field] = "spec.driver"
	}
	d.template.Spec.PoolName = strings.ToLower(c.driver) + "/" + defaults.PoolName
	d.template.Spec.SliceLabels = map[string]string{
		"test.karpenter.sh/managed-by": "dra-kwok-driver",
		"test.karpenter.sh/node":       defaults.PoolName,
		poolLabel:                      given.Name,
		"test.karpenter.sh/driver":     c.driver,
	}
	c.addTerms(d, given.NodeSelectorTerms, path.Child("nodeSelectorTerms"))
	c.requireField(len(given.ResourceSlices) > 0, path.Child("resourceSlices"), "give at least one slice with devices")
	for i := range given.ResourceSlices {
		c.addSlice(d, given.ResourceSlices[i].Devices, path.Child("resourceSlices").Index(i))
	}
	if d.template.Spec.NodeSelector != nil {
		c.drafts = append(c.drafts, d)
	}
}

// takeName refuses pools without a name, with a name that is not a label, and with the name of another pool.
func (c *draConfig) takeName(name string, path *field.Path) bool {
	if !c.requireField(name != "", path, "the name of the pool, for example h100-pool") {
		return false
	}
	if errs := validation.ValidateLabel(name, path); len(errs) > 0 {
		c.addProblems(errs...)
		return false
	}
	return c.adapter.takeName(name, path)
}

// addTerms adds the terms that select nodes.
func (c *draConfig) addTerms(d *draft, given []corev1.NodeSelectorTerm, path *field.Path) {
	c.requireField(len(given) > 0, path, "give at least one term with matchExpressions or matchFields")
	for i, term := range given {
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			c.noteChange("%s is left out, since a term with nothing in it selects no node", path.Index(i))
			continue
		}
		if d.template.Spec.NodeSelector == nil {
			d.template.Spec.NodeSelector = &corev1.NodeSelector{}
		}
		selector := d.template.Spec.NodeSelector
		d.setOrigin(terms.Index(len(selector.NodeSelectorTerms)), path.Index(i))
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
}

func (c *draConfig) addSlice(d *draft, given []v1alpha1.DeviceTemplate, path *field.Path) {
	if !c.requireField(len(given) > 0, path.Child("devices"), "give at least one device") {
		d.incomplete = true
		return
	}
	for i := range given {
		if given[i].ConsumesCounters != nil {
			c.addProblems(field.Forbidden(path.Child("devices").Index(i).Child("consumesCounters"), "a DRAConfig has no sharedCounters that could be consumed; a ResourcePoolTemplate does"))
		}
	}
	c.adapter.addSlice(d, given, path)
}
