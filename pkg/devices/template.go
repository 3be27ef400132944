package devices

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Template is a ResourcePoolTemplate made ready for use: selectors compiled,
// Go templates parsed, values that need no node resolved.
type Template struct {
	// Name is the name of the ResourcePoolTemplate.
	Name string
	// Driver is the DRA driver's name.
	Driver string
	// Priority ranks the template among those of its driver.
	Priority int32
	// PublishWhen and RetireWhen are nil where the template leaves them to the
	// KwokDRAConfiguration.
	PublishWhen, RetireWhen *lifecycle.Selector
	// ClaimStatus says what claims show of prepared devices.
	ClaimStatus *ClaimStatus
	// ReportsHealth tells whether Pods show the health of the devices.
	ReportsHealth bool

	nodes  *nodeaffinity.NodeSelector
	text   *text
	groups []group
}

// group is a device group: a prototype whose parts are shared by all devices
// made from it, and the places that are rendered for each.
type group struct {
	names     []string
	prototype resourcev1.Device
	places    []place
}

// place is a rendered value's way into a device.
type place struct {
	path  *field.Path
	value string
	set   func(device *resourcev1.Device, text string) error
}

// fill puts a rendered value in its place. What Go templates print for a field
// that is not there is refused, or it would end up in a slice.
func (p *place) fill(device *resourcev1.Device, text string) error {
	if strings.Contains(text, noValue) {
		return field.Invalid(p.path, p.value, "the Node lacks a field that this reads; give a fallback, for example {{ or .Node.metadata.labels.zone \"none\" }}")
	}
	if err := p.set(device, text); err != nil {
		return field.Invalid(p.path, text, err.Error())
	}
	return nil
}

// Compile validates a defaulted template and makes it ready for use.
func Compile(t *v1alpha1.ResourcePoolTemplate) (*Template, field.ErrorList) {
	errs := t.Validate()
	if len(errs) > 0 {
		return nil, errs
	}
	compiled := &Template{Name: t.Name, Driver: t.Spec.Driver, Priority: t.Spec.Priority, ReportsHealth: t.Spec.Health == v1alpha1.HealthReport}
	spec := field.NewPath("spec")
	for i := range t.Spec.Devices {
		group, problems := newGroup(&t.Spec.Devices[i], spec.Child("devices").Index(i))
		compiled.groups = append(compiled.groups, group)
		errs = append(errs, problems...)
	}
	text, problems := newText(place{path: spec.Child("poolName"), value: t.Spec.PoolName}, compiled.groups)
	compiled.text = text
	errs = append(errs, problems...)
	compiled.ClaimStatus, problems = newClaimStatus(t.Spec.ClaimStatus, spec.Child("claimStatus"))
	errs = append(errs, problems...)
	return compiled, append(errs, compiled.compileSelectors(t, spec)...)
}

func (t *Template) compileSelectors(source *v1alpha1.ResourcePoolTemplate, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector := source.Spec.PublishWhen; selector != nil {
		compiled, problems := lifecycle.CompileForNode(selector, spec.Child("publishWhen"))
		t.PublishWhen, errs = compiled, append(errs, problems...)
	}
	if selector := source.Spec.RetireWhen; selector != nil {
		compiled, problems := lifecycle.CompileForNode(selector, spec.Child("retireWhen"))
		t.RetireWhen, errs = compiled, append(errs, problems...)
	}
	if selector := source.Spec.NodeSelector; selector != nil {
		nodes, err := nodeaffinity.NewNodeSelector(selector)
		if err != nil {
			errs = append(errs, field.Invalid(spec.Child("nodeSelector"), field.OmitValueType{}, err.Error()))
		}
		t.nodes = nodes
	}
	return errs
}

func newGroup(d *v1alpha1.DeviceTemplate, path *field.Path) (group, field.ErrorList) {
	g := group{names: d.Names(), prototype: resourcev1.Device{
		Taints:                   d.Taints,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		BindsToNode:              d.BindsToNode,
		BindingConditions:        d.BindingConditions,
		BindingFailureConditions: d.BindingFailureConditions,
	}}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		attribute := d.Attributes[name]
		errs = append(errs, g.add(place{
			path:  path.Child("attributes").Key(string(name)),
			value: attribute.Value,
			set: func(device *resourcev1.Device, text string) error {
				resolved, err := attribute.Resolve(text)
				put(&device.Attributes, name, resolved)
				return err
			},
		})...)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		capacity := d.Capacity[name]
		errs = append(errs, g.add(place{
			path:  path.Child("capacity").Key(string(name)),
			value: capacity.Value,
			set: func(device *resourcev1.Device, text string) error {
				resolved, err := capacity.Resolve(text)
				put(&device.Capacity, name, resolved)
				return err
			},
		})...)
	}
	return g, errs
}

// add resolves a literal in the prototype, and keeps a template for later.
func (g *group) add(p place) field.ErrorList {
	if v1alpha1.IsTemplate(p.value) {
		g.places = append(g.places, p)
		return nil
	}
	if err := p.set(&g.prototype, p.value); err != nil {
		return field.ErrorList{field.Invalid(p.path, p.value, err.Error())}
	}
	return nil
}

func put[V any](values *map[resourcev1.QualifiedName]V, name resourcev1.QualifiedName, value V) {
	if *values == nil {
		*values = map[resourcev1.QualifiedName]V{}
	}
	(*values)[name] = value
}

// copyWithRoom copies a map and leaves room for the values to be rendered, so
// that it does not grow for each device of a fleet.
func copyWithRoom[V any](values map[resourcev1.QualifiedName]V, room int) map[resourcev1.QualifiedName]V {
	if values == nil {
		return nil
	}
	copied := make(map[resourcev1.QualifiedName]V, len(values)+room)
	maps.Copy(copied, values)
	return copied
}

// Selects tells whether the template is for the node.
func (t *Template) Selects(node *corev1.Node) bool {
	return t.nodes == nil || t.nodes.Match(node)
}

// Uses tells whether any device of the template has what used looks for, in
// fields that are not rendered.
func (t *Template) Uses(used func(device *resourcev1.Device) bool) bool {
	return slices.ContainsFunc(t.groups, func(g group) bool { return used(&g.prototype) })
}

// render makes the pool's name and the devices for a node.
func (t *Template) render(node *lifecycle.Object) (string, []resourcev1.Device, error) {
	values, err := t.text.render(node)
	if err != nil {
		return "", nil, fmt.Errorf("render template %s: %w", t.Name, err)
	}
	poolName := values.next()
	if errs := v1alpha1.ValidatePoolName(poolName, field.NewPath("spec", "poolName")); len(errs) > 0 {
		return "", nil, fmt.Errorf("render template %s: %w", t.Name, errs.ToAggregate())
	}
	var devices []resourcev1.Device
	for i := range t.groups {
		made, err := t.groups[i].devices(values)
		if err != nil {
			return "", nil, fmt.Errorf("render template %s: %w", t.Name, err)
		}
		devices = append(devices, made...)
	}
	return poolName, devices, nil
}

// devices makes the devices of the group. Maps are shared with the prototype,
// and so between nodes, as long as nothing in them is rendered.
func (g *group) devices(values *values) ([]resourcev1.Device, error) {
	devices := make([]resourcev1.Device, len(g.names))
	for i, name := range g.names {
		devices[i] = g.prototype
		devices[i].Name = name
		if len(g.places) == 0 {
			continue
		}
		devices[i].Attributes = copyWithRoom(g.prototype.Attributes, len(g.places))
		devices[i].Capacity = copyWithRoom(g.prototype.Capacity, len(g.places))
		for _, place := range g.places {
			if err := place.fill(&devices[i], values.next()); err != nil {
				return nil, fmt.Errorf("device %s: %w", name, err)
			}
		}
	}
	return devices, nil
}
