package slices

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// gatedField is a field that an API server drops silently when the feature gate is
// off. If it were sent nevertheless, every slice would always look edited.
type gatedField struct {
	name, gate string
	// without is what would be wrong with a pool without the field; the pool is not
	// published then. Where it is empty, the pool is published without the field.
	without string
	// used finds the field in a pool, and clear removes it.
	used  func(pool *devices.Pool) bool
	clear func(pool *devices.Pool)
	// probe is the least of a slice that has the field, and kept finds it in the
	// answer.
	probe func() resourcev1.ResourceSliceSpec
	kept  func(spec *resourcev1.ResourceSliceSpec) bool
}

// counters is the name of the field that decides on the layout.
const counters = "consumesCounters"

// probeName is the name of everything in a probe.
const probeName = "probe"

// gatedFields are in the order in which they are taken from a pool.
var gatedFields = []gatedField{
	onDevices("taints", "DRADeviceTaints",
		func(d *resourcev1.Device) bool { return len(d.Taints) > 0 },
		func(d *resourcev1.Device) { d.Taints = nil },
		resourcev1.Device{Taints: []resourcev1.DeviceTaint{{Key: probeName, Effect: resourcev1.DeviceTaintEffectNoSchedule}}}),
	onDevices("allowMultipleAllocations", "DRAConsumableCapacity",
		func(d *resourcev1.Device) bool { return d.AllowMultipleAllocations != nil },
		dropSharing,
		resourcev1.Device{AllowMultipleAllocations: new(true)}),
	// The gate is one for all three, and bindsToNode may be there alone.
	onDevices("bindingConditions", "DRADeviceBindingConditions",
		func(d *resourcev1.Device) bool {
			return d.BindsToNode != nil || len(d.BindingConditions)+len(d.BindingFailureConditions) > 0
		},
		func(d *resourcev1.Device) {
			d.BindsToNode, d.BindingConditions, d.BindingFailureConditions = nil, nil, nil
		},
		resourcev1.Device{BindsToNode: new(true)}),
	onDevices("list attributes", "DRAListTypeAttributes",
		devices.HasListAttribute,
		dropLists,
		resourcev1.Device{Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{probeName: {StringValues: []string{probeName}}}}),
	onDevices("nodeAllocatableResources", "DRANodeAllocatableResources",
		func(d *resourcev1.Device) bool { return len(d.NodeAllocatableResources) > 0 },
		nil,
		resourcev1.Device{NodeAllocatableResources: map[corev1.ResourceName]resourcev1.NodeAllocatableResource{
			corev1.ResourceCPU: {Mapping: &resourcev1.NodeAllocatableMapping{DeviceMultiplier: one()}},
		}}).neededOr("its devices would not count against the node's own resources").askedOfNoNode(),
	onDevices(counters, "DRAPartitionableDevices",
		func(d *resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 },
		nil,
		resourcev1.Device{ConsumesCounters: probeCounters()}).neededOr("devices that exclude each other could be allocated together"),
	onDevices("compatibilityGroups", "DRADeviceCompatibilityGroups",
		hasGroups,
		nil,
		resourcev1.Device{ConsumesCounters: withGroups(probeCounters())}).neededOr("devices that exclude each other could be allocated together"),
	{
		name: "perDeviceNodeSelection", gate: "DRAPartitionableDevices", without: "its devices would not be limited to their nodes",
		used: func(pool *devices.Pool) bool { return pool.SharedWith != nil && pool.SharedWith.PerDeviceNodeSelection },
		probe: func() resourcev1.ResourceSliceSpec {
			return resourcev1.ResourceSliceSpec{PerDeviceNodeSelection: new(true), Devices: []resourcev1.Device{{Name: probeName, AllNodes: new(true)}}}
		},
		kept: func(spec *resourcev1.ResourceSliceSpec) bool { return spec.PerDeviceNodeSelection != nil },
	},
	{
		name: "partitionTypeAttribute", gate: "DRAPartitionableDevicesType",
		used:  func(pool *devices.Pool) bool { return pool.PartitionTypeAttribute != nil },
		clear: func(pool *devices.Pool) { pool.PartitionTypeAttribute = nil },
		probe: func() resourcev1.ResourceSliceSpec {
			// The API server requires a device that consumes counters and has the attribute.
			const attribute = "example.com/" + probeName
			return resourcev1.ResourceSliceSpec{
				AllNodes: new(true), PartitionTypeAttribute: new(resourcev1.FullyQualifiedName(attribute)),
				Devices: []resourcev1.Device{{
					Name:             probeName,
					Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{attribute: {StringValue: new(probeName)}},
					ConsumesCounters: probeCounters(),
				}},
			}
		},
		kept: func(spec *resourcev1.ResourceSliceSpec) bool { return spec.PartitionTypeAttribute != nil },
	},
	{
		name: "skipNodeOperations", gate: "DRAOptionalNodeOperations",
		used:  func(pool *devices.Pool) bool { return len(pool.SkipNodeOperations) > 0 },
		clear: func(pool *devices.Pool) { pool.SkipNodeOperations = nil },
		probe: func() resourcev1.ResourceSliceSpec {
			return resourcev1.ResourceSliceSpec{
				AllNodes: new(true), SkipNodeOperations: []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll},
				Devices: []resourcev1.Device{{Name: probeName}},
			}
		},
		kept: func(spec *resourcev1.ResourceSliceSpec) bool { return len(spec.SkipNodeOperations) > 0 },
	},
}

// onDevices is a field of devices.
func onDevices(name, gate string, used func(*resourcev1.Device) bool, drop func(*resourcev1.Device), probe resourcev1.Device) gatedField {
	probe.Name = probeName
	some := func(list []resourcev1.Device) bool {
		for i := range list {
			if used(&list[i]) {
				return true
			}
		}
		return false
	}
	return gatedField{
		name: name, gate: gate,
		used: func(pool *devices.Pool) bool { return some(pool.Devices) },
		clear: func(pool *devices.Pool) {
			// They are shared with the template.
			pool.Devices = slices.Clone(pool.Devices)
			for i := range pool.Devices {
				drop(&pool.Devices[i])
			}
		},
		probe: func() resourcev1.ResourceSliceSpec {
			return resourcev1.ResourceSliceSpec{AllNodes: new(true), Devices: []resourcev1.Device{probe}}
		},
		kept: func(spec *resourcev1.ResourceSliceSpec) bool { return some(spec.Devices) },
	}
}

// neededOr marks a field without which a pool is not published.
func (f gatedField) neededOr(without string) gatedField {
	f.without = without
	return f
}

// askedOfNoNode makes the probe select a node that does not exist: some fields are
// refused for nodes that have not declared the feature.
func (f gatedField) askedOfNoNode() gatedField {
	probe := f.probe
	f.probe = func() resourcev1.ResourceSliceSpec {
		spec := probe()
		spec.AllNodes, spec.NodeSelector = nil, &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{probeName + "." + v1alpha1.GroupName}}},
		}}}
		return spec
	}
	return f
}

// dropSharing leaves a device that one request takes whole.
func dropSharing(d *resourcev1.Device) {
	d.AllowMultipleAllocations = nil
	d.Capacity = maps.Clone(d.Capacity)
	for name, capacity := range d.Capacity {
		d.Capacity[name] = resourcev1.DeviceCapacity{Value: capacity.Value}
	}
}

func dropLists(d *resourcev1.Device) {
	d.Attributes = maps.Clone(d.Attributes)
	maps.DeleteFunc(d.Attributes, func(_ resourcev1.QualifiedName, a resourcev1.DeviceAttribute) bool { return devices.IsList(a) })
}

func hasGroups(d *resourcev1.Device) bool {
	return slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 })
}

func probeCounters() []resourcev1.DeviceCounterConsumption {
	return []resourcev1.DeviceCounterConsumption{{CounterSet: probeName, Counters: map[string]resourcev1.Counter{probeName: {Value: *one()}}}}
}

func withGroups(consumed []resourcev1.DeviceCounterConsumption) []resourcev1.DeviceCounterConsumption {
	consumed[0].CompatibilityGroups = []string{probeName}
	return consumed
}

func one() *resource.Quantity {
	return resource.NewQuantity(1, resource.DecimalSI)
}
