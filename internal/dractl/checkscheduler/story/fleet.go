package story

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// zoneLabel is a label of nodes by which network-attached pools choose theirs.
const zoneLabel = "topology.kubernetes.io/zone"

// fleet is what there is at some moment of the story.
type fleet struct {
	nodes   []*corev1.Node
	drivers []*driver
	pools   []*pool
	// anyClass is a class that the devices of all drivers match.
	anyClass string
}

// flavor is what the devices of a driver can do besides being allocated.
type flavor string

const (
	plainDevices       flavor = "plain"
	partitionedDevices flavor = "partitioned"
	sharedDevices      flavor = "shared"
	taintedDevices     flavor = "tainted"
	bindingDevices     flavor = "binding"
)

// driver has pools of devices that are alike.
type driver struct {
	name, class string
	flavor      flavor
	// extendedResource is what Pods may ask for instead of a claim, or empty.
	extendedResource string
	isTainted        bool
}

// pool is a pool as it is published at some moment of the story.
type pool struct {
	driver *driver
	name   string
	// node is that of a node-attached pool, or empty.
	node   string
	slices []*resourcev1.ResourceSlice
}

// hasBindingConditions reports whether Pods may have to wait for drivers.
func (f *fleet) hasBindingConditions() bool {
	return slices.ContainsFunc(f.drivers, func(d *driver) bool { return d.flavor == bindingDevices })
}

// createFleet makes nodes, drivers and their pools.
func (g *generator) createFleet() {
	step := Step{Say: "The nodes come up, and their devices are published."}
	namespace := g.newNamespace()
	if g.features.AdminAccess && g.chance(25) {
		g.load.hasAdminAccess = true
		namespace.Labels[resourcev1.DRAAdminNamespaceLabelKey] = "true"
	}
	step.Create = append(step.Create, namespace, g.newServiceAccount())
	for i := range g.between(2, 4) {
		node := g.newNode(i)
		g.fleet.nodes = append(g.fleet.nodes, node)
		step.Create = append(step.Create, node)
	}
	for i := range choose(g, 1, 1, 1, 2, 2, 3) {
		d := g.newDriver(i)
		g.fleet.drivers = append(g.fleet.drivers, d)
		step.Create = append(step.Create, g.newClass(d))
	}
	if len(g.fleet.drivers) > 1 && g.chance(50) {
		class := g.newAnyClass()
		g.fleet.anyClass = class.Name
		step.Create = append(step.Create, class)
	}
	for _, d := range g.fleet.drivers {
		g.fleet.pools = append(g.fleet.pools, g.newPools(d)...)
	}
	for _, p := range g.fleet.pools {
		for _, slice := range p.slices {
			step.Create = append(step.Create, slice.DeepCopy())
		}
	}
	g.story.addStep(step)
}

// newNode makes a node, which few Pods fit at times.
func (g *fleetMaker) newNode(index int) *corev1.Node {
	node := &corev1.Node{TypeMeta: typeOf("v1", "Node"), ObjectMeta: g.clusterMeta(fmt.Sprintf("node-%d", index))}
	node.Labels[zoneLabel] = choose(g, "a", "b")
	node.Labels[corev1.LabelHostname] = node.Name
	if g.chance(10) {
		node.Spec.Taints = []corev1.Taint{{Key: domain + "/reserved", Effect: corev1.TaintEffectNoSchedule}}
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourcePods: parseAmount("110"), corev1.ResourceCPU: parseAmount("4"), corev1.ResourceMemory: parseAmount("32Gi"),
	}
	node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "NodeOfStory"}}
	return node
}

// newDriver makes a driver whose devices have one flavor.
func (g *fleetMaker) newDriver(index int) *driver {
	flavors := []flavor{plainDevices}
	for _, f := range []struct {
		flavor flavor
		isOn   bool
	}{
		{partitionedDevices, g.features.PartitionableDevices},
		{sharedDevices, g.features.ConsumableCapacity},
		{taintedDevices, g.features.DeviceTaints},
		{bindingDevices, g.features.BindingConditions},
	} {
		if f.isOn {
			flavors = append(flavors, f.flavor)
		}
	}
	kind := []string{"gpu", "nic", "fpga"}[index]
	d := &driver{name: fmt.Sprintf("%s.%s.%s", kind, g.id, domain), class: g.id + "-" + kind, flavor: choose(g, flavors...)}
	d.isTainted = d.flavor == taintedDevices
	if g.features.ExtendedResources && d.flavor != bindingDevices && g.chance(30) {
		d.extendedResource = g.id + "." + domain + "/" + kind
	}
	return d
}

// newClass makes the class of a driver.
func (g *fleetMaker) newClass(d *driver) *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{TypeMeta: typeOf(resourceVersion, "DeviceClass"), ObjectMeta: g.clusterMeta(d.class[len(g.id)+1:])}
	class.Spec.Selectors = []resourcev1.DeviceSelector{selectBy("device.driver == %q", d.name)}
	if g.chance(15) {
		class.Spec.Selectors = append(class.Spec.Selectors, selectBy("device.attributes[%q].index < 3", d.name))
	}
	if g.chance(15) {
		class.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: newConfig(d, "class")}}
	}
	if d.extendedResource != "" {
		class.Spec.ExtendedResourceName = &d.extendedResource
	}
	return class
}

// newAnyClass makes a class for the devices of all drivers of the story.
func (g *fleetMaker) newAnyClass() *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{TypeMeta: typeOf(resourceVersion, "DeviceClass"), ObjectMeta: g.clusterMeta("any")}
	class.Spec.Selectors = []resourcev1.DeviceSelector{selectBy("device.driver.endsWith(%q)", "."+g.id+"."+domain)}
	return class
}

func selectBy(format string, values ...any) resourcev1.DeviceSelector {
	return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(format, values...)}}
}

func newConfig(d *driver, of string) resourcev1.DeviceConfiguration {
	config := &resourcev1.OpaqueDeviceConfiguration{Driver: d.name}
	config.Parameters.Raw = fmt.Appendf(nil, `{"of":%q}`, of)
	return resourcev1.DeviceConfiguration{Opaque: config}
}

// newPools makes the pools of a driver: one for each node, or a few that several nodes reach, or both.
func (g *fleetMaker) newPools(d *driver) []*pool {
	var pools []*pool
	isNetworked := g.chance(30)
	for _, node := range g.fleet.nodes {
		if !isNetworked || g.chance(30) {
			pools = append(pools, g.newNodePool(d, node.Name))
		}
	}
	if isNetworked {
		for i := range g.between(1, 2) {
			pools = append(pools, g.newNetworkPool(d, i))
		}
	}
	return pools
}

func (g *fleetMaker) newNodePool(d *driver, node string) *pool {
	p := &pool{driver: d, name: node, node: node}
	g.publishPool(p, func(spec *resourcev1.ResourceSliceSpec) { spec.NodeName = &node })
	return p
}

// newNetworkPool makes a pool that all nodes reach, those of a zone, or some by device.
func (g *fleetMaker) newNetworkPool(d *driver, index int) *pool {
	p := &pool{driver: d, name: fmt.Sprintf("%s-net-%d", g.id, index)}
	ways := 2
	if g.features.PartitionableDevices {
		ways = 3
	}
	switch g.IntN(ways) {
	case 0:
		g.publishPool(p, func(spec *resourcev1.ResourceSliceSpec) { spec.AllNodes = new(true) })
	case 1:
		zone := choose(g, "a", "b")
		g.publishPool(p, func(spec *resourcev1.ResourceSliceSpec) { spec.NodeSelector = selectZone(zone) })
	default:
		g.publishPool(p, func(spec *resourcev1.ResourceSliceSpec) {
			spec.PerDeviceNodeSelection = new(true)
			for i := range spec.Devices {
				g.attachDevice(&spec.Devices[i])
			}
		})
	}
	return p
}

// attachDevice gives a device nodes of its own.
func (g *fleetMaker) attachDevice(device *resourcev1.Device) {
	switch g.IntN(3) {
	case 0:
		device.AllNodes = new(true)
	case 1:
		device.NodeSelector = selectZone(choose(g, "a", "b"))
	default:
		device.NodeName = new(choose(g, g.fleet.nodes...).Name)
	}
}

func selectZone(zone string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}
}
