package devices

import (
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// ownCounters are what the counter set of a device holds: its counters, and one
// for each slot.
func ownCounters(d *v1alpha1.DeviceTemplate) map[string]resourcev1.Counter {
	counters := map[string]resourcev1.Counter{}
	for name, quantity := range d.Counters {
		counters[name] = resourcev1.Counter{Value: quantity}
	}
	if d.Slots != nil {
		takeSlots(counters, d.Slots, 0, d.Slots.Count)
	}
	return counters
}

// takeSlots adds the counters of slots that lie side by side.
func takeSlots(counters map[string]resourcev1.Counter, slots *v1alpha1.Slots, first, size int32) {
	for slot := first; slot < first+size; slot++ {
		counters[slots.Counter(slot)] = resourcev1.Counter{Value: *resource.NewQuantity(1, resource.DecimalSI)}
	}
}

// newPartitions makes the group of one kind of partition of all devices.
func newPartitions(d *v1alpha1.DeviceTemplate, whole *group, p *v1alpha1.PartitionTemplate, path, devicePath *field.Path) group {
	inherited := *d
	inherited.Attributes = withoutOwn(d.Attributes, p.Attributes)
	inherited.Capacity = nil
	g := newGroup(&inherited, devicePath)
	uuid, has := d.Attributes[v1alpha1.AttributeUUID]
	if has && uuid.Type == v1alpha1.AttributeString {
		g.places = append(g.places, derivedUUIDs(p.Attributes, uuid, devicePath.Child("attributes").Key(string(v1alpha1.AttributeUUID))))
	}
	g.addAttributes(p.Attributes, path.Child("attributes"))
	g.addCapacity(p.Capacity, path.Child("capacity"))
	g.partitions, g.placements = p.Number(), p.Placements
	var names []string
	for i := range whole.devices {
		names = append(names, numbered(whole.devices[i].Name+"-"+p.Name, g.partitions)...)
	}
	g.multiply(names)
	for i := range g.devices {
		parent, partition := &whole.devices[i/g.partitions], i%g.partitions
		g.devices[i].NodeName = parent.NodeName
		g.devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{consumption(d, p, parent.Name, partition)}
	}
	return g
}

// withoutOwn are the attributes that a partition inherits: those that it does
// not give itself, and not what identifies the device.
func withoutOwn(inherited, own map[resourcev1.QualifiedName]v1alpha1.Attribute) map[resourcev1.QualifiedName]v1alpha1.Attribute {
	kept := maps.Clone(inherited)
	maps.DeleteFunc(kept, func(name resourcev1.QualifiedName, _ v1alpha1.Attribute) bool {
		_, replaced := own[name]
		return replaced || name == v1alpha1.AttributeUUID
	})
	return kept
}

// derivedUUIDs derives the UUIDs of a partition from the device's, unless the
// partition gives its own.
func derivedUUIDs(own map[resourcev1.QualifiedName]v1alpha1.Attribute, uuid v1alpha1.Attribute, path *field.Path) place {
	_, hasParent := own[v1alpha1.AttributeParentUUID]
	_, hasOwn := own[v1alpha1.AttributeUUID]
	return place{path: path, value: uuid.Value, set: func(device *resourcev1.Device, text string) error {
		parent, err := validation.ResolveAttribute(uuid, text)
		if err != nil {
			return err
		}
		if !hasParent {
			put(&device.Attributes, v1alpha1.AttributeParentUUID, parent)
		}
		if hasOwn {
			return nil
		}
		derived, err := deterministicUUID(text, device.Name)
		put(&device.Attributes, v1alpha1.AttributeUUID, resourcev1.DeviceAttribute{StringValue: &derived})
		return err
	}}
}

// consumption is what a partition takes of its device's counter set.
func consumption(d *v1alpha1.DeviceTemplate, p *v1alpha1.PartitionTemplate, device string, partition int) resourcev1.DeviceCounterConsumption {
	counters := map[string]resourcev1.Counter{}
	for name, quantity := range p.Consumes {
		counters[name] = resourcev1.Counter{Value: quantity}
	}
	if len(p.Placements) > 0 {
		takeSlots(counters, d.Slots, p.Placements[partition], p.Slots())
	}
	return resourcev1.DeviceCounterConsumption{CounterSet: v1alpha1.CounterSetOf(device), Counters: counters}
}
