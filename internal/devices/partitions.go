package devices

import (
	"fmt"
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

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
