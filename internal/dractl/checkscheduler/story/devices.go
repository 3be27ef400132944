package story

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// publishPool makes the slices of a pool. One pool in twelve lacks a slice.
func (g *fleetMaker) publishPool(p *pool, attach func(*resourcev1.ResourceSliceSpec)) {
	devices, counters := g.newDevices(p.driver)
	parts := [][]resourcev1.Device{devices}
	if len(devices) > 1 && g.chance(25) {
		cut := g.between(1, len(devices)-1)
		parts = [][]resourcev1.Device{devices[:cut:cut], devices[cut:]}
	}
	if counters != nil && g.features.CountersWithDevices {
		parts = parts[:1]
		parts[0] = devices
	}
	for _, part := range parts {
		p.slices = append(p.slices, &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Devices: part}})
	}
	switch {
	case counters == nil:
	case g.features.CountersWithDevices:
		p.slices[0].Spec.SharedCounters = counters
	default:
		p.slices = append(p.slices, &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{SharedCounters: counters}})
	}
	count := int64(len(p.slices))
	if g.chance(8) {
		count++
	}
	for i, slice := range p.slices {
		slice.TypeMeta = typeOf(resourceVersion, "ResourceSlice")
		slice.ObjectMeta = g.clusterMeta(p.sliceName(g.id, i))
		slice.Spec.Driver = p.driver.name
		slice.Spec.Pool = resourcev1.ResourcePool{Name: p.name, Generation: 1, ResourceSliceCount: count}
		attach(&slice.Spec)
	}
}

// sliceName names a slice within the story.
func (p *pool) sliceName(id string, index int) string {
	kind, _, _ := strings.Cut(p.driver.name, ".")
	return fmt.Sprintf("%s-%s-%d", strings.TrimPrefix(p.name, id+"-"), kind, index)
}

// newDevices makes the devices of a pool, and what they are partitions of.
func (g *fleetMaker) newDevices(d *driver) ([]resourcev1.Device, []resourcev1.CounterSet) {
	if d.flavor == partitionedDevices {
		return g.newPartitions(d)
	}
	var devices []resourcev1.Device
	for i := range choose(g, 1, 1, 2, 2, 3, 4) {
		devices = append(devices, g.newDevice(d, i))
	}
	return devices, nil
}

// newPartitions makes one or two cards, which can be used whole or in parts.
func (g *fleetMaker) newPartitions(d *driver) ([]resourcev1.Device, []resourcev1.CounterSet) {
	var devices []resourcev1.Device
	var counters []resourcev1.CounterSet
	for card := range choose(g, 1, 1, 2) {
		set := fmt.Sprintf("card-%d", card)
		counters = append(counters, resourcev1.CounterSet{Name: set, Counters: map[string]resourcev1.Counter{
			"memory": {Value: parseAmount("40Gi")}, "engines": {Value: parseAmount("4")},
		}})
		partitions := []struct{ name, memory, engines string }{
			{"whole", "40Gi", "4"}, {"half-0", "20Gi", "2"}, {"half-1", "20Gi", "2"}, {"media", "10Gi", "3"},
		}
		for _, part := range partitions[:g.between(2, len(partitions))] {
			device := g.newDevice(d, len(devices))
			device.Name = set + "-" + part.name
			device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: parseAmount(part.memory)}}
			device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: set, Counters: map[string]resourcev1.Counter{
				"memory": {Value: parseAmount(part.memory)}, "engines": {Value: parseAmount(part.engines)},
			}}}
			devices = append(devices, device)
		}
	}
	return devices, counters
}

// newDevice makes a device with attributes, of which not all devices have the root.
func (g *fleetMaker) newDevice(d *driver, index int) resourcev1.Device {
	device := resourcev1.Device{Name: fmt.Sprintf("dev-%d", index)}
	device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"index":          {IntValue: new(int64(index))},
		"model":          {StringValue: new(choose(g, "a", "a", "b"))},
		"fast":           {BoolValue: new(g.chance(50))},
		"firmware":       {VersionValue: new(choose(g, "1.0.0", "1.2.0", "2.0.0"))},
		domain + "/numa": {IntValue: new(int64(g.IntN(2)))},
	}
	if g.chance(80) {
		device.Attributes[domain+"/root"] = resourcev1.DeviceAttribute{StringValue: new(choose(g, "r0", "r1"))}
	}
	device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: parseAmount(choose(g, "10Gi", "20Gi", "40Gi"))}}
	switch d.flavor {
	case sharedDevices:
		device.AllowMultipleAllocations = new(true)
		device.Capacity["memory"] = resourcev1.DeviceCapacity{Value: parseAmount("40Gi"), RequestPolicy: g.newMemoryPolicy()}
		device.Capacity["lanes"] = resourcev1.DeviceCapacity{Value: parseAmount("8"), RequestPolicy: g.newLanesPolicy()}
		if g.chance(15) {
			device.AllowMultipleAllocations = nil
			device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: parseAmount("40Gi")}, "lanes": {Value: parseAmount("8")}}
		}
	case taintedDevices:
		if g.chance(40) {
			device.Taints = []resourcev1.DeviceTaint{g.newTaint()}
		}
	case bindingDevices:
		if g.chance(70) {
			device.BindingConditions = []string{domain + "/attached"}
			device.BindingFailureConditions = []string{domain + "/broken"}
			if g.chance(40) {
				device.BindsToNode = new(true)
			}
		}
	}
	return device
}

func (g *fleetMaker) newTaint() resourcev1.DeviceTaint {
	return resourcev1.DeviceTaint{
		Key: domain + "/" + choose(g, "worn", "reserved"), Value: choose(g, "low", "high"),
		Effect: choose(g, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute),
	}
}

// newMemoryPolicy has a request rounded up to a value of a list, or leaves it as it is.
func (g *fleetMaker) newMemoryPolicy() *resourcev1.CapacityRequestPolicy {
	if g.chance(40) {
		return nil
	}
	return &resourcev1.CapacityRequestPolicy{
		Default:     new(parseAmount(choose(g, "10Gi", "20Gi"))),
		ValidValues: []resource.Quantity{parseAmount("10Gi"), parseAmount("20Gi"), parseAmount("40Gi")},
	}
}

// newLanesPolicy has a request rounded up to a step, or takes all lanes by default.
func (g *fleetMaker) newLanesPolicy() *resourcev1.CapacityRequestPolicy {
	if g.chance(30) {
		return nil
	}
	policy := &resourcev1.CapacityRequestPolicy{Default: new(parseAmount(choose(g, "2", "4"))), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: new(parseAmount("2"))}}
	if g.chance(50) {
		policy.ValidRange.Step = new(parseAmount("2"))
	}
	if g.chance(50) {
		policy.ValidRange.Max = new(parseAmount("6"))
	}
	return policy
}
