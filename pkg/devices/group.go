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
// each device.
type group struct {
	// like is what is given for all devices.
	like    resourcev1.Device
	devices []*device
	places  []place
	// partitions is how many partitions each device of the group has, or 0 where
	// the group is of whole devices.
	partitions int
	// placements are the first slots of the partitions.
	placements []int32
}

// device is a device as it is before it is rendered. Parts of it are shared with
// others, so they are not written to.
type device struct {
	resourcev1.Device
	group *group
	// index is that in the group.
	index int
}

// newGroup makes a group without devices of what is given for all, which has been
// validated.
func newGroup(d *v1alpha1.DeviceTemplate, path *field.Path) *group {
	g := &group{like: resourcev1.Device{
		Taints:                   d.Taints,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		BindsToNode:              d.BindsToNode,
		BindingConditions:        d.BindingConditions,
		BindingFailureConditions: d.BindingFailureConditions,
		NodeSelector:             d.NodeSelector,
		AllNodes:                 d.AllNodes,
		NodeAllocatableResources: d.NodeAllocatableResources,
	}}
	g.addAttributes(d.Attributes, path.Child("attributes"))
	g.addCapacity(d.Capacity, path.Child("capacity"))
	return g
}

func (g *group) addAttributes(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		g.addValue(attributes[name].Value, path.Key(string(name)), func(device *resourcev1.Device, text string) error {
			resolved, err := validation.ResolveAttribute(attributes[name], text)
			put(&device.Attributes, name, resolved)
			return err
		})
	}
}

func (g *group) addCapacity(capacity map[resourcev1.QualifiedName]v1alpha1.Capacity, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		g.addValue(capacity[name].Value, path.Key(string(name)), func(device *resourcev1.Device, text string) error {
			resolved, err := validation.ResolveCapacity(capacity[name], text)
			device.Capacity = maps.Clone(device.Capacity) // few are rendered, so the others are shared
			put(&device.Capacity, name, resolved)
			return err
		})
	}
}

// addValue sets a literal at once, and a template later.
func (g *group) addValue(text string, path *field.Path, set func(device *resourcev1.Device, text string) error) {
	if v1alpha1.IsTemplate(text) {
		g.places = append(g.places, place{path: path, value: text, set: set})
		return
	}
	_ = set(&g.like, text) // validation has told
}

func (g *group) addDevice(name string) *device {
	made := &device{Device: g.like, group: g, index: len(g.devices)}
	made.Name = name
	g.devices = append(g.devices, made)
	return made
}

// settle checks the places of a group by samples. It leaves those that are to be rendered
// for each node, since they read it or its driver Pod; values of others are put into the
// devices.
func (g *group) settle(samples map[string]any) (errs field.ErrorList) {
	places := g.places
	g.places = nil
	seen := g.given(0)
	maps.Copy(seen, samples)
	for _, p := range places {
		problems := p.check(seen)
		switch {
		case len(problems) > 0:
		case p.program != nil && (reads(p.value, "Node") || reads(p.value, "DriverPod")):
			problems = p.checkAround()
			g.places = append(g.places, p)
		default:
			problems = g.fix(&p)
		}
		errs = append(errs, problems...)
	}
	return errs
}

// fix puts what a place yields into the devices. It refuses a value that is wrong.
func (g *group) fix(p *place) field.ErrorList {
	texts, errs := p.renderEach(len(g.devices), g.given)
	for i, text := range texts {
		device := g.devices[i]
		device.Attributes = maps.Clone(device.Attributes)
		err := p.set(&device.Device, text)
		if strings.Contains(text, noValue) {
			err = errors.New("reads what is not there; give a fallback with or")
		}
		if err != nil {
			return p.refuse(fmt.Sprintf("yields %q for device %s: %v", text, device.Name, err))
		}
	}
	return errs
}

func (g *group) names() []string {
	names := make([]string, len(g.devices))
	for i, device := range g.devices {
		names[i] = device.Name
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

// render makes a device for a node. Maps are shared with the group, and so between
// nodes, as long as nothing in them is rendered.
func (d *device) render(r *rendering) (resourcev1.Device, error) {
	made := d.Device
	if len(d.group.places) == 0 {
		return made, nil
	}
	made.Attributes = copyWithRoom(made.Attributes, len(d.group.places))
	given := d.group.given(d.index)
	for i := range d.group.places {
		p := &d.group.places[i]
		text, err := p.text(r, given)
		if err == nil {
			err = p.fill(&made, text)
		}
		if err != nil {
			return made, fmt.Errorf("device %s: %w", made.Name, err)
		}
	}
	return made, nil
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
