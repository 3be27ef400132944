package features

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Field is a field of resource pools that an API server drops silently if its feature gate is off.
type Field struct {
	Name, Gate string
	// Without is what would be wrong with a pool without the field, which is then not published. If it is empty, the
	// pool is published without the field.
	Without string

	// used finds the field in a pool, and clear removes it.
	used  func(pool *devices.Pool) bool
	clear func(pool *devices.Pool)
	// probe is the smallest slice that has the field. Without nodes it is for all of them.
	probe resourcev1.ResourceSliceSpec
}

// Probe is the smallest slice that has the field, for a driver and a pool that do not exist.
func (f *Field) Probe() resourcev1.ResourceSliceSpec {
	spec := *f.probe.DeepCopy()
	spec.Driver = probeDriver
	spec.Pool = resourcev1.ResourcePool{Name: probeName, Generation: 1, ResourceSliceCount: 1}
	if spec.NodeSelector == nil && spec.PerDeviceNodeSelection == nil {
		spec.AllNodes = new(true)
	}
	return spec
}

// Kept reports whether the answer to a probe has the field.
func (f *Field) Kept(spec *resourcev1.ResourceSliceSpec) bool {
	return f.used(&devices.Pool{
		SharedWith:             &v1alpha1.SharedWith{PerDeviceNodeSelection: spec.PerDeviceNodeSelection != nil},
		Devices:                spec.Devices,
		PartitionTypeAttribute: spec.PartitionTypeAttribute,
		SkipNodeOperations:     spec.SkipNodeOperations,
	})
}

const (
	// Counters is the name of the field that decides the layout.
	Counters = "consumesCounters"
	// probeName is the name of everything in a probe.
	probeName = "probe"
	// probeDriver is the name of a driver, and of a node, that do not exist.
	probeDriver = probeName + "." + v1alpha1.GroupName
	// probeAttribute is the attribute of a partition in a probe.
	probeAttribute = "example.com/" + probeName
	// notExclusive is what is wrong without counters.
	notExclusive = "devices that exclude each other could be allocated together"
)

// Fields are all such fields, in the order in which Fit clears them.
var Fields = []Field{
	onDevices(Field{Name: "taints", Gate: "DRADeviceTaints"},
		resourcev1.Device{Taints: []resourcev1.DeviceTaint{{Key: probeName, Effect: resourcev1.DeviceTaintEffectNoSchedule}}},
		func(d resourcev1.Device) bool { return len(d.Taints) > 0 },
		func(d *resourcev1.Device) { d.Taints = nil }),
	onDevices(Field{Name: "allowMultipleAllocations", Gate: "DRAConsumableCapacity"},
		resourcev1.Device{AllowMultipleAllocations: new(true)},
		func(d resourcev1.Device) bool { return d.AllowMultipleAllocations != nil },
		func(d *resourcev1.Device) { // a request takes it whole
			d.AllowMultipleAllocations = nil
			d.Capacity = maps.Clone(d.Capacity)
			for name, capacity := range d.Capacity {
				d.Capacity[name] = resourcev1.DeviceCapacity{Value: capacity.Value}
			}
		}),
	// One gate covers all three fields, and bindsToNode may be set alone.
	onDevices(Field{Name: "bindingConditions", Gate: "DRADeviceBindingConditions"},
		resourcev1.Device{BindsToNode: new(true)},
		func(d resourcev1.Device) bool {
			return d.BindsToNode != nil || len(d.BindingConditions)+len(d.BindingFailureConditions) > 0
		},
		func(d *resourcev1.Device) {
			d.BindsToNode, d.BindingConditions, d.BindingFailureConditions = nil, nil, nil
		}),
	onDevices(Field{Name: "list attributes", Gate: "DRAListTypeAttributes"},
		resourcev1.Device{Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{probeName: {StringValues: []string{probeName}}}},
		func(d resourcev1.Device) bool { return devices.HasListAttribute(&d) },
		func(d *resourcev1.Device) {
			d.Attributes = maps.Clone(d.Attributes)
			maps.DeleteFunc(d.Attributes, func(_ resourcev1.QualifiedName, a resourcev1.DeviceAttribute) bool { return devices.IsList(a) })
		}),
	onDevices(
		Field{
			Name: "nodeAllocatableResources", Gate: "DRANodeAllocatableResources", Without: "its devices would not count against the node's own resources",
			// The API server refuses it for nodes that have not declared the feature.
			probe: resourcev1.ResourceSliceSpec{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{probeDriver}}},
			}}}},
		},
		resourcev1.Device{NodeAllocatableResources: map[corev1.ResourceName]resourcev1.NodeAllocatableResource{
			corev1.ResourceCPU: {Mapping: &resourcev1.NodeAllocatableMapping{DeviceMultiplier: new(resource.MustParse("1"))}},
		}},
		func(d resourcev1.Device) bool { return len(d.NodeAllocatableResources) > 0 },
		nil),
	onDevices(Field{Name: Counters, Gate: "DRAPartitionableDevices", Without: notExclusive},
		resourcev1.Device{ConsumesCounters: probeCounters()},
		func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 },
		nil),
	onDevices(Field{Name: "compatibilityGroups", Gate: "DRADeviceCompatibilityGroups", Without: notExclusive},
		resourcev1.Device{ConsumesCounters: probeCounters(probeName)},
		func(d resourcev1.Device) bool {
			return slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool {
				return len(c.CompatibilityGroups) > 0
			})
		},
		nil),
	{
		Name: "perDeviceNodeSelection", Gate: "DRAPartitionableDevices", Without: "its devices would not be limited to their nodes",
		used: func(pool *devices.Pool) bool { return pool.SharedWith != nil && pool.SharedWith.PerDeviceNodeSelection },
		probe: resourcev1.ResourceSliceSpec{
			PerDeviceNodeSelection: new(true),
			Devices:                []resourcev1.Device{{Name: probeName, AllNodes: new(true)}},
		},
	},
	{
		Name: "partitionTypeAttribute", Gate: "DRAPartitionableDevicesType",
		used:  func(pool *devices.Pool) bool { return pool.PartitionTypeAttribute != nil },
		clear: func(pool *devices.Pool) { pool.PartitionTypeAttribute = nil },
		probe: resourcev1.ResourceSliceSpec{
			PartitionTypeAttribute: new(resourcev1.FullyQualifiedName(probeAttribute)),
			// The API server requires a device that consumes counters and has the attribute.
			Devices: []resourcev1.Device{{
				Name:             probeName,
				Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{probeAttribute: {StringValue: new(probeName)}},
				ConsumesCounters: probeCounters(),
			}},
		},
	},
	{
		Name: "skipNodeOperations", Gate: "DRAOptionalNodeOperations",
		used:  func(pool *devices.Pool) bool { return len(pool.SkipNodeOperations) > 0 },
		clear: func(pool *devices.Pool) { pool.SkipNodeOperations = nil },
		probe: resourcev1.ResourceSliceSpec{
			SkipNodeOperations: []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll},
			Devices:            []resourcev1.Device{{Name: probeName}},
		},
	},
}

// onDevices makes a field of devices. The probe has one device with it.
func onDevices(field Field, probe resourcev1.Device, used func(resourcev1.Device) bool, drop func(*resourcev1.Device)) Field {
	probe.Name = probeName
	field.probe.Devices = []resourcev1.Device{probe}
	field.used = func(pool *devices.Pool) bool { return slices.ContainsFunc(pool.Devices, used) }
	field.clear = func(pool *devices.Pool) {
		pool.Devices = slices.Clone(pool.Devices) // the template shares them
		for i := range pool.Devices {
			drop(&pool.Devices[i])
		}
	}
	return field
}

func probeCounters(groups ...string) []resourcev1.DeviceCounterConsumption {
	return []resourcev1.DeviceCounterConsumption{{
		CounterSet: probeName, Counters: map[string]resourcev1.Counter{probeName: {Value: resource.MustParse("1")}}, CompatibilityGroups: groups,
	}}
}

// Server is an API server, or what is known of one.
type Server interface {
	// Keeps reports whether it keeps a field.
	Keeps(ctx context.Context, field *Field) (bool, error)
	// Layout is how it wants pools with counters to be divided. It is known once Keeps was called for Counters.
	Layout() devices.Layout
}

// Fitted are pools as an API server accepts them.
type Fitted struct {
	Pools   []devices.Pool
	Layout  devices.Layout
	Dropped []Dropped
}

// Dropped is a field that an API server drops.
type Dropped struct {
	// Source is the name of the template that has the field, or of the annotation with device taints.
	Source string
	Field  *Field
}

// Fit makes the pools as a server accepts them: without the fields that it drops, and without the pools that would be
// wrong without a field.
func Fit(ctx context.Context, server Server, pools []devices.Pool) (Fitted, error) {
	var fitted Fitted
	for _, pool := range pools {
		isWrong := false
		for i := range Fields {
			field := &Fields[i]
			if !field.used(&pool) {
				continue
			}
			isKept, err := server.Keeps(ctx, field)
			switch {
			case err != nil:
				return Fitted{}, err
			case isKept:
				continue
			case field.Without != "":
				isWrong = true
			default:
				field.clear(&pool)
			}
			users := slices.DeleteFunc(slices.Clone(pool.Templates), func(t *devices.Template) bool { return !t.Uses(field.used) })
			for _, t := range users {
				fitted.Dropped = append(fitted.Dropped, Dropped{t.Name, field})
			}
			if len(users) == 0 { // the field comes from the annotation
				fitted.Dropped = append(fitted.Dropped, Dropped{v1alpha1.DeviceTaintsAnnotation, field})
			}
		}
		if !isWrong {
			fitted.Pools = append(fitted.Pools, pool)
		}
	}
	fitted.Layout = server.Layout()
	return fitted, nil
}

// InUse reports whether the source still has the field. The annotation always counts.
func (d Dropped) InUse(templates []*devices.Template) bool {
	return d.Source == v1alpha1.DeviceTaintsAnnotation || slices.ContainsFunc(templates, func(t *devices.Template) bool {
		return t.Name == d.Source && t.Uses(d.Field.used)
	})
}
