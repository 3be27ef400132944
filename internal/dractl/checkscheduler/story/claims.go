package story

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// newClaimSpec makes the spec of a claim with one to three requests.
func (g *loadMaker) newClaimSpec() resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	var names []string
	for i := range choose(g, 1, 1, 1, 2, 2, 3) {
		request := g.newRequest(fmt.Sprintf("r%d", i))
		spec.Devices.Requests = append(spec.Devices.Requests, request)
		names = append(names, request.Name)
	}
	if g.chance(40) {
		spec.Devices.Constraints = append(spec.Devices.Constraints, g.newConstraint(names))
	}
	if g.chance(20) {
		config := resourcev1.DeviceClaimConfiguration{DeviceConfiguration: newConfig(choose(g, g.fleet.drivers...), "claim")}
		if g.chance(50) {
			config.Requests = []string{choose(g, names...)}
		}
		spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{config}
	}
	return spec
}

// newRequest asks for devices in one way, or in the first way of two that is possible.
func (g *loadMaker) newRequest(name string) resourcev1.DeviceRequest {
	request := resourcev1.DeviceRequest{Name: name, Exactly: g.newExactRequest()}
	if !g.features.PrioritizedList || request.Exactly.AdminAccess != nil || !g.chance(20) {
		return request
	}
	for i, way := range []*resourcev1.ExactDeviceRequest{request.Exactly, g.newExactRequest()} {
		request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: fmt.Sprintf("way-%d", i), DeviceClassName: way.DeviceClassName, Selectors: way.Selectors,
			AllocationMode: way.AllocationMode, Count: way.Count, Tolerations: way.Tolerations, Capacity: way.Capacity,
		})
	}
	request.Exactly = nil
	return request
}

func (g *loadMaker) newExactRequest() *resourcev1.ExactDeviceRequest {
	d := choose(g, g.fleet.drivers...)
	request := &resourcev1.ExactDeviceRequest{DeviceClassName: d.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(choose(g, 1, 1, 1, 2))}
	if g.fleet.anyClass != "" && g.chance(20) {
		request.DeviceClassName = g.fleet.anyClass
		if g.chance(50) {
			request.Selectors = []resourcev1.DeviceSelector{selectBy("device.driver == %q", d.name)}
		}
	}
	isAny := request.DeviceClassName == g.fleet.anyClass
	if g.chance(12) {
		request.AllocationMode, request.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if g.chance(35) && !isAny {
		request.Selectors = append(request.Selectors, g.newSelector(d))
	}
	if g.load.hasAdminAccess && g.chance(25) {
		request.AdminAccess = new(true)
	}
	if slices.ContainsFunc(g.fleet.drivers, func(d *driver) bool { return d.isTainted }) && g.chance(50) {
		request.Tolerations = g.newTolerations()
	}
	if d.flavor == sharedDevices && g.chance(70) && !isAny {
		request.Capacity = g.newCapacity()
	}
	return request
}

// newSelector selects devices of one driver.
func (g *fleetMaker) newSelector(d *driver) resourcev1.DeviceSelector {
	switch g.IntN(6) {
	case 0:
		return selectBy("device.attributes[%q].model == %q", d.name, choose(g, "a", "b"))
	case 1:
		return selectBy("device.attributes[%q].index < %d", d.name, g.between(1, 2))
	case 2:
		return selectBy("device.capacity[%q].memory.compareTo(quantity(%q)) >= 0", d.name, choose(g, "20Gi", "40Gi"))
	case 3:
		return selectBy("device.attributes[%q].firmware.isGreaterThan(semver(%q))", d.name, choose(g, "1.0.0", "1.2.0"))
	case 4:
		return selectBy(`"root" in device.attributes[%q] && device.attributes[%q].root == %q`, domain, domain, choose(g, "r0", "r1"))
	}
	return selectBy("device.attributes[%q].fast || device.attributes[%q].numa == 1", d.name, domain)
}

func (g *loadMaker) newTolerations() []resourcev1.DeviceToleration {
	toleration := resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists}
	if g.chance(70) {
		toleration.Key = domain + "/" + choose(g, "worn", "reserved")
	}
	if toleration.Key != "" && g.chance(40) {
		toleration.Operator, toleration.Value = resourcev1.DeviceTolerationOpEqual, choose(g, "low", "high")
	}
	if g.chance(30) {
		toleration.Effect = choose(g, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute)
	}
	return []resourcev1.DeviceToleration{toleration}
}

// newCapacity asks for amounts of which some have to be rounded up.
func (g *loadMaker) newCapacity() *resourcev1.CapacityRequirements {
	capacity := &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{}}
	if g.chance(70) {
		capacity.Requests["memory"] = parseAmount(choose(g, "4Gi", "10Gi", "15Gi", "20Gi"))
	}
	if len(capacity.Requests) == 0 || g.chance(40) {
		capacity.Requests["lanes"] = parseAmount(choose(g, "1", "2", "3", "6"))
	}
	return capacity
}

// newConstraint has devices alike, or different, in an attribute of one driver or of all. Not all devices have it.
func (g *loadMaker) newConstraint(requests []string) resourcev1.DeviceConstraint {
	var constraint resourcev1.DeviceConstraint
	if len(requests) > 1 && g.chance(40) {
		constraint.Requests = requests[:len(requests)-1]
	}
	attribute := resourcev1.FullyQualifiedName(choose(g, domain+"/numa", domain+"/root", domain+"/root", choose(g, g.fleet.drivers...).name+"/model"))
	if g.features.ConsumableCapacity && g.chance(40) {
		constraint.DistinctAttribute = &attribute
	} else {
		constraint.MatchAttribute = &attribute
	}
	return constraint
}
