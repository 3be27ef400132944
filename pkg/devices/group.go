package devices

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
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
	// program is nil for a value that is no template.
	program *program
	set     func(device *resourcev1.Device, text string) error
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

// newGroup makes a group of one device without a name of what is given for all, which
// has been validated.
func newGroup(d *v1alpha1.DeviceTemplate, path *field.Path) group {
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
	g.addAttributes(d.Attributes, path.Child("attributes"))
	g.addCapacity(d.Capacity, path.Child("capacity"))
	return g
}

func (g *group) addAttributes(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, path *field.Path) {
	addAll(g, attributes, path, func(device *resourcev1.Device, name resourcev1.QualifiedName, text string) error {
		resolved, err := validation.ResolveAttribute(attributes[name], text)
		put(&device.Attributes, name, resolved)
		return err
	}, func(a v1alpha1.Attribute) string { return a.Value })
}

func (g *group) addCapacity(capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, path *field.Path) {
	addAll(g, capacities, path, func(device *resourcev1.Device, name resourcev1.QualifiedName, text string) error {
		resolved, err := validation.ResolveCapacity(capacities[name], text)
		device.Capacity = copyWithRoom(device.Capacity, 1) // few are rendered, so the others are shared
		put(&device.Capacity, name, resolved)
		return err
	}, func(c v1alpha1.Capacity) string { return c.Value })
}

// addAll adds values by name, each of which set sets: literals at once, and templates
// later.
func addAll[V any](g *group, given map[resourcev1.QualifiedName]V, path *field.Path,
	set func(device *resourcev1.Device, name resourcev1.QualifiedName, text string) error, textOf func(V) string,
) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text := textOf(given[name])
		if !v1alpha1.IsTemplate(text) {
			_ = set(&g.devices[0], name, text) // validation has told
			continue
		}
		g.places = append(g.places, place{path: path.Key(string(name)), value: text, set: func(device *resourcev1.Device, text string) error {
			return set(device, name, text)
		}})
	}
}

// multiply makes the group's one device many, one for each name.
func (g *group) multiply(names []string) {
	g.devices = slices.Repeat(g.devices, len(names))
	for i := range g.devices {
		g.devices[i].Name = names[i]
	}
}

// fix puts what a place yields into the devices. It refuses a value that is wrong.
func (g *group) fix(p place) field.ErrorList {
	texts, err := renderEach(p, len(g.devices), g.given)
	if err != nil {
		return field.ErrorList{field.Invalid(p.path, p.value, "cannot be rendered: "+err.Error())}
	}
	for i, text := range texts {
		device := &g.devices[i]
		device.Attributes = copyWithRoom(device.Attributes, 1)
		err := p.set(device, text)
		if strings.Contains(text, noValue) {
			err = errors.New("reads what is not there; give a fallback with or")
		}
		if err != nil {
			return field.ErrorList{field.Invalid(p.path, p.value, fmt.Sprintf("yields %q for device %s: %v", text, device.Name, err))}
		}
	}
	return nil
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

// render makes a device of the group for a node. Maps are shared with the group, and
// so between nodes, as long as nothing in them is rendered.
func (g *group) render(i int, v *view) (resourcev1.Device, error) {
	device := g.devices[i]
	if len(g.places) == 0 {
		return device, nil
	}
	device.Attributes = copyWithRoom(device.Attributes, len(g.places))
	given := g.given(i)
	for j := range g.places {
		text, err := v.value(&g.places[j], given)
		if err == nil {
			err = g.places[j].fill(&device, text)
		}
		if err != nil {
			return device, fmt.Errorf("device %s: %w", device.Name, err)
		}
	}
	return device, nil
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
