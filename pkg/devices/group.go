package devices

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// group is a group of like devices, or of like partitions of all devices of a
// group: what is the same on every node, and the places that are rendered for
// each device. Parts of the devices are shared, so they are not written to.
type group struct {
	devices []resourcev1.Device
	places  []place
	// partitions is how many partitions each device of the group has, or 0 where
	// the group is of whole devices.
	partitions int
	// placements are the first slots of the partitions.
	placements []int32
}

// place is a rendered value's way into a device, or the label with a key.
type place struct {
	key   string
	path  *field.Path
	value string
	// number is that of the value among the templates.
	number int
	set    func(device *resourcev1.Device, text string) error
}

// fill puts a rendered value in its place. It refuses what Go templates
// print for a missing field, which would end up in a slice.
func (p *place) fill(device *resourcev1.Device, text string) error {
	if strings.Contains(text, noValue) {
		return field.Invalid(p.path, p.value, "the Node lacks a field that this reads; give a fallback, for example {{ or .Node.metadata.labels.zone \"none\" }}")
	}
	if err := p.set(device, text); err != nil {
		return field.Invalid(p.path, text, err.Error())
	}
	return nil
}

// newGroup makes a group of one device without a name of what is given for all.
func newGroup(d *v1alpha1.DeviceTemplate, path *field.Path) (group, field.ErrorList) {
	g := group{devices: []resourcev1.Device{{
		Taints:                   d.Taints,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		BindsToNode:              d.BindsToNode,
		BindingConditions:        d.BindingConditions,
		BindingFailureConditions: d.BindingFailureConditions,
		NodeSelector:             d.NodeSelector,
		AllNodes:                 d.AllNodes,
		NodeAllocatableResources: d.NodeAllocatableResources,
	}}}
	errs := g.addAttributes(d.Attributes, path.Child("attributes"))
	return g, append(errs, g.addCapacity(d.Capacity, path.Child("capacity"))...)
}

func (g *group) addAttributes(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, path *field.Path) field.ErrorList {
	return addAll(g, attributes, path,
		func(a v1alpha1.Attribute) string { return a.Value },
		func(d *resourcev1.Device) *map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
			return &d.Attributes
		})
}

func (g *group) addCapacity(capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, path *field.Path) field.ErrorList {
	return addAll(g, capacities, path,
		func(c v1alpha1.Capacity) string { return c.Value },
		func(d *resourcev1.Device) *map[resourcev1.QualifiedName]resourcev1.DeviceCapacity { return &d.Capacity })
}

// resolver turns a value as it is written into one as it is published.
type resolver[R any] interface {
	Resolve(text string) (R, error)
}

// addAll adds values by name to a map of the device.
func addAll[V resolver[R], R any](g *group, given map[resourcev1.QualifiedName]V, path *field.Path,
	text func(V) string, into func(*resourcev1.Device) *map[resourcev1.QualifiedName]R,
) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		errs = append(errs, g.add(place{
			path:  path.Key(string(name)),
			value: text(value),
			set: func(device *resourcev1.Device, text string) error {
				resolved, err := value.Resolve(text)
				put(into(device), name, resolved)
				return err
			},
		})...)
	}
	return errs
}

// add resolves a literal at once, and keeps a template for later.
func (g *group) add(p place) field.ErrorList {
	if v1alpha1.IsTemplate(p.value) {
		g.places = append(g.places, p)
		return nil
	}
	if err := p.set(&g.devices[0], p.value); err != nil {
		return field.ErrorList{field.Invalid(p.path, p.value, err.Error())}
	}
	return nil
}

// multiply makes the group's one device many, one for each name.
func (g *group) multiply(names []string) {
	g.devices = slices.Repeat(g.devices, len(names))
	for i := range g.devices {
		g.devices[i].Name = names[i]
	}
}

func (g *group) names() []string {
	names := make([]string, len(g.devices))
	for i := range g.devices {
		names[i] = g.devices[i].Name
	}
	return names
}

// given is what the places of a device see besides the Node.
func (g *group) given(device int) map[string]any {
	if g.partitions == 0 {
		return map[string]any{"Index": device}
	}
	partition := device % g.partitions
	given := map[string]any{"Index": device / g.partitions, "Partition": partition}
	if len(g.placements) > 0 {
		given["Placement"] = int(g.placements[partition])
	}
	return given
}

// render makes the devices of the group for a node. Maps are shared with the
// group, and so between nodes, as long as nothing in them is rendered.
func (g *group) render(v *view) ([]resourcev1.Device, error) {
	if len(g.places) == 0 {
		return g.devices, nil
	}
	devices := slices.Clone(g.devices)
	for i := range devices {
		devices[i].Attributes = copyWithRoom(devices[i].Attributes, len(g.places))
		devices[i].Capacity = copyWithRoom(devices[i].Capacity, len(g.places))
		given := g.given(i)
		for j := range g.places {
			text, err := v.value(&g.places[j], given)
			if err == nil {
				err = g.places[j].fill(&devices[i], text)
			}
			if err != nil {
				return nil, fmt.Errorf("device %s: %w", devices[i].Name, err)
			}
		}
	}
	return devices, nil
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
