package devices

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// group is a group of equal devices, or of equal partitions of all devices of a group: what is the
// same on every Node, and the values that are rendered for each device.
type group struct {
	// common is what all devices have.
	common  resourcev1.Device
	devices []*device
	values  []deviceValue
	// partitions is how many of the group's partitions a whole device has, or 0 in a group of whole
	// devices.
	partitions int
	// placements are the first slots of the partitions.
	placements []int32
}

// device is a device before it is rendered. It shares its parts with other devices, so do not write
// to them.
type device struct {
	resourcev1.Device
	group *group
	// data is what its values see besides the Node and the driver Pod. It is nil where no values are
	// rendered for each Node.
	data map[string]any
}

// newGroup makes a group without devices of a validated template.
func newGroup(d *v1alpha1.DeviceTemplate, path *field.Path) *group {
	g := &group{common: resourcev1.Device{
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
			if device.Attributes == nil {
				device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			}
			device.Attributes[name] = resolved
			return err
		})
	}
}

func (g *group) addCapacity(capacity map[resourcev1.QualifiedName]v1alpha1.Capacity, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		g.addValue(capacity[name].Value, path.Key(string(name)), func(device *resourcev1.Device, text string) error {
			resolved, err := validation.ResolveCapacity(capacity[name], text)
			device.Capacity = maps.Clone(device.Capacity) // the devices share it, and few have rendered capacity
			if device.Capacity == nil {
				device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
			}
			device.Capacity[name] = resolved
			return err
		})
	}
}

// addValue sets literal text at once. A template is rendered later.
func (g *group) addValue(text string, path *field.Path, set func(device *resourcev1.Device, text string) error) {
	if v1alpha1.IsTemplate(text) {
		g.values = append(g.values, deviceValue{Text: gotemplate.Text{Path: path, Source: text}, set: set})
		return
	}
	_ = set(&g.common, text) // validation has already reported the error
}

func (g *group) addDevice(name string) *device {
	made := &device{Device: g.common, group: g}
	made.Name = name
	g.devices = append(g.devices, made)
	return made
}

// checkValues checks the values of the group by sample data. Those that read the Node or its driver
// Pod remain, to be rendered for each Node. It sets all others in the devices.
func (g *group) checkValues(sample map[string]any) (errs field.ErrorList) {
	values := g.values
	g.values = nil
	data := g.dataOf(0)
	maps.Copy(data, sample)
	for _, v := range values {
		problems := v.Check(data)
		switch {
		case len(problems) > 0:
		case v1alpha1.IsTemplate(v.Source) && (v.Reads("Node") || v.Reads("DriverPod")):
			problems = v.checkLiteralParts()
			g.values = append(g.values, v)
		default:
			problems = g.setValue(&v)
		}
		errs = append(errs, problems...)
	}
	if len(g.values) > 0 {
		for i, device := range g.devices {
			device.data = g.dataOf(i)
		}
	}
	return errs
}

// setValue renders a value for each device, and sets it.
func (g *group) setValue(v *deviceValue) field.ErrorList {
	texts, errs := renderForEach(&v.Text, len(g.devices), g.dataOf)
	for i, text := range texts {
		device := g.devices[i]
		device.Attributes = maps.Clone(device.Attributes)
		err := v.set(&device.Device, text)
		if strings.Contains(text, gotemplate.NoValue) {
			err = errors.New("reads what is not there; give a fallback with or")
		}
		if err != nil {
			return v.Refuse(fmt.Sprintf("yields %q for device %s: %v", text, device.Name, err))
		}
	}
	return errs
}

func (g *group) deviceNames() []string {
	names := make([]string, len(g.devices))
	for i, device := range g.devices {
		names[i] = device.Name
	}
	return names
}

// dataOf is what the values of a device see besides the Node and the driver Pod.
func (g *group) dataOf(device int) map[string]any {
	if g.partitions == 0 {
		return map[string]any{"Index": device}
	}
	partition := device % g.partitions
	data := map[string]any{"Index": device / g.partitions, "Partition": partition}
	if len(g.placements) > 0 {
		data["Placement"] = int(g.placements[partition])
	}
	return data
}
