package devices

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// group is a group of equal devices, or of equal partitions of all devices of a group: what is the
// same on every Node, and the values that are rendered for each device.
type group struct {
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

type deviceValue struct {
	gotemplate.Text

	set func(device *resourcev1.Device, text string) error
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
	g.addValues(d.Attributes, d.Capacity, path)
	return g
}

// addValues sets literal values at once. Those that are templates are rendered later.
func (g *group) addValues(attributes map[resourcev1.QualifiedName]v1alpha1.Attribute, capacity map[resourcev1.QualifiedName]v1alpha1.Capacity, path *field.Path) {
	var values []deviceValue
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		text := gotemplate.Text{Path: path.Child("attributes").Key(string(name)), Source: attributes[name].Value}
		values = append(values, deviceValue{Text: text, set: func(device *resourcev1.Device, text string) error {
			resolved, err := validation.ResolveAttribute(attributes[name], text)
			if device.Attributes == nil {
				device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			}
			device.Attributes[name] = resolved
			return err
		}})
	}
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		text := gotemplate.Text{Path: path.Child("capacity").Key(string(name)), Source: capacity[name].Value}
		values = append(values, deviceValue{Text: text, set: func(device *resourcev1.Device, text string) error {
			resolved, err := validation.ResolveCapacity(capacity[name], text)
			device.Capacity = maps.Clone(device.Capacity) // the devices share it, and few have rendered capacity
			if device.Capacity == nil {
				device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
			}
			device.Capacity[name] = resolved
			return err
		}})
	}
	for _, v := range values {
		if v1alpha1.IsTemplate(v.Source) {
			g.values = append(g.values, v)
		} else {
			_ = v.set(&g.common, v.Source) // validation has already reported the error
		}
	}
}

func (g *group) addDevice(name string) *device {
	made := &device{Device: g.common, group: g}
	made.Name = name
	g.devices = append(g.devices, made)
	return made
}

// newPartitions makes the group of one kind of partition of all whole devices.
func newPartitions(d *v1alpha1.DeviceTemplate, whole *group, p *v1alpha1.PartitionTemplate, path, devicePath *field.Path) *group {
	inherited := *d
	inherited.Attributes = maps.Clone(d.Attributes)
	maps.DeleteFunc(inherited.Attributes, func(name resourcev1.QualifiedName, _ v1alpha1.Attribute) bool {
		_, replaced := p.Attributes[name]
		return replaced || name == v1alpha1.AttributeUUID // which identifies the whole device
	})
	inherited.Capacity = nil
	g := newGroup(&inherited, devicePath)
	uuid := d.Attributes[v1alpha1.AttributeUUID]
	_, hasUUID := p.Attributes[v1alpha1.AttributeUUID]
	_, hasParent := p.Attributes[v1alpha1.AttributeParentUUID]
	deriveUUIDs := func(device *resourcev1.Device, text string) error {
		parent, err := validation.ResolveAttribute(uuid, text)
		if err != nil {
			return err
		}
		if device.Attributes == nil {
			device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
		}
		if !hasParent {
			device.Attributes[v1alpha1.AttributeParentUUID] = parent
		}
		if hasUUID {
			return nil
		}
		derived, err := gotemplate.UUID(text, device.Name)
		device.Attributes[v1alpha1.AttributeUUID] = resourcev1.DeviceAttribute{StringValue: &derived}
		return err
	}
	if uuid.Type == v1alpha1.AttributeString {
		at := devicePath.Child("attributes").Key(string(v1alpha1.AttributeUUID))
		g.values = append(g.values, deviceValue{Text: gotemplate.Text{Path: at, Source: uuid.Value}, set: deriveUUIDs})
	}
	g.addValues(p.Attributes, p.Capacity, path)
	g.partitions, g.placements = p.Number(), p.Placements
	for _, parent := range whole.devices {
		for i := range g.partitions {
			var first, size int32
			if len(p.Placements) > 0 {
				first, size = p.Placements[i], p.Slots()
			}
			made := g.addDevice(fmt.Sprintf("%s-%s-%d", parent.Name, p.Name, i))
			made.NodeName = parent.NodeName
			made.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
				CounterSet: v1alpha1.CounterSetOf(parent.Name), Counters: countersOf(p.Consumes, d.Slots, first, size),
			}}
		}
	}
	return g
}

// countersOf returns counters by name, and one for each slot from first on.
func countersOf(quantities map[string]resource.Quantity, slots *v1alpha1.Slots, first, size int32) map[string]resourcev1.Counter {
	counters := map[string]resourcev1.Counter{}
	for name, quantity := range quantities {
		counters[name] = resourcev1.Counter{Value: quantity}
	}
	for slot := first; slot < first+size; slot++ {
		counters[slots.Counter(slot)] = resourcev1.Counter{Value: *resource.NewQuantity(1, resource.DecimalSI)}
	}
	return counters
}

// checkValues checks the values of the group by sample data. Those that read the Node or its driver
// Pod remain, to be rendered for each Node. It sets all others in the devices.
func (g *group) checkValues(sample map[string]any) (errs field.ErrorList) {
	values := g.values
	g.values = nil
	data := g.dataOf(0)
	maps.Copy(data, sample)
	for _, v := range values {
		if problems := v.Check(data); len(problems) > 0 {
			errs = append(errs, problems...)
			continue
		}
		if v1alpha1.IsTemplate(v.Source) && (v.Reads("Node") || v.Reads("DriverPod")) {
			errs = append(errs, v.checkLiteralParts()...)
			g.values = append(g.values, v)
			continue
		}
		texts, problems := renderForEach(&v.Text, len(g.devices), g.dataOf)
		errs = append(errs, problems...)
		for i, text := range texts {
			device := g.devices[i]
			device.Attributes = maps.Clone(device.Attributes)
			err := v.set(&device.Device, text)
			if strings.Contains(text, gotemplate.NoValue) {
				err = errors.New("reads what is not there; give a fallback with or")
			}
			if err != nil {
				errs = append(errs, v.Refuse(fmt.Sprintf("yields %q for device %s: %v", text, device.Name, err))...)
				break
			}
		}
	}
	if len(g.values) > 0 {
		for i, device := range g.devices {
			device.data = g.dataOf(i)
		}
	}
	return errs
}

// sampleResults are results of actions, one for each type of value.
var sampleResults = []string{"1", "true", "1.0", "1.0.0", "1Gi", ""}

// checkLiteralParts refuses a template whose text around the actions makes every value wrong, such
// as "abc{{ .Node.metadata.labels.index }}" for an integer.
func (v *deviceValue) checkLiteralParts() field.ErrorList {
	var first error
	for _, result := range sampleResults {
		text, ok := v.FillActions(result)
		if !ok {
			return nil
		}
		err := v.set(&resourcev1.Device{}, text)
		if err == nil {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("yields such as %q: %w", text, err)
		}
	}
	return v.Refuse(first.Error())
}

// MissingField is the error of a text that reads a field which the Node or the driver Pod lacks.
func MissingField(text *gotemplate.Text) error {
	owner, example := "Node", "{{ or .Node.metadata.labels.zone \"none\" }}"
	if strings.Contains(text.Source, "DriverPod") {
		owner, example = "driver Pod", "{{ or .DriverPod.env.DRIVER_NAME \"gpu.example.com\" }}"
		if strings.Contains(text.Source, "Node") {
			owner = "Node or the driver Pod"
		}
	}
	return field.Invalid(text.Path, text.Source, "the "+owner+" lacks a field that this reads; give a fallback, for example "+example)
}

// readsNode matches a template that reads the Node.
var readsNode = regexp.MustCompile(`{{[^}]*\.Node\b`)

// refuseNode refuses a text that reads the Node where there is none.
func refuseNode(text *gotemplate.Text, why string) field.ErrorList {
	if !readsNode.MatchString(text.Source) {
		return nil
	}
	return text.Refuse("must not read .Node; it " + why)
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
