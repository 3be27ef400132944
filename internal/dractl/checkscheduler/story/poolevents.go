package story

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// replacePool publishes a pool with other devices, with its next generation.
func (g *generator) replacePool() {
	if len(g.fleet.pools) == 0 {
		return
	}
	p := choose(g, g.fleet.pools...)
	g.changeDevices(p)
	step := Step{Say: "The driver publishes pool " + p.name + " with other devices.", Rest: g.chance(60)}
	for _, slice := range p.nextGeneration() {
		step.Replace = append(step.Replace, slice)
	}
	g.story.addStep(step)
}

// replacePoolSlowly has a pool grow, at times while Pods come.
func (g *generator) replacePoolSlowly() {
	if len(g.fleet.pools) == 0 {
		return
	}
	p := choose(g, g.fleet.pools...)
	if p.driver.flavor == partitionedDevices {
		g.replacePool() // all slices have their counters
		return
	}
	g.growPool(p, func() {
		if g.chance(50) {
			g.addPods(g.between(1, 2))
		}
	})
}

// growPool publishes the next generation of a pool with a slice more, slice by slice: the pool is incomplete in between,
// while something else happens.
func (g *generator) growPool(p *pool, meanwhile func()) {
	more := p.slices[0].DeepCopy()
	more.ObjectMeta = g.clusterMeta(p.sliceName(g.id, len(p.slices)))
	more.Spec.Devices = nil
	for range g.between(1, 2) {
		more.Spec.Devices = append(more.Spec.Devices, g.newDeviceOf(p, p.unusedIndex()+len(more.Spec.Devices)))
	}
	p.slices = append(p.slices, more)
	next := p.nextGeneration()
	for _, slice := range next {
		slice.Spec.Pool.ResourceSliceCount++
	}
	for _, slice := range p.slices {
		slice.Spec.Pool.ResourceSliceCount++
	}
	step := Step{Say: "The driver starts to publish pool " + p.name + " with a slice more.", Rest: g.chance(40)}
	for _, slice := range next[:len(next)-1] {
		step.Replace = append(step.Replace, slice)
	}
	g.story.addStep(step)
	meanwhile()
	g.story.addStep(Step{Say: "Pool " + p.name + " is complete.", Create: Objects{next[len(next)-1]}, Rest: g.chance(60)})
}

// deletePool has a driver withdraw a pool. One remains.
func (g *generator) deletePool() {
	if len(g.fleet.pools) < 2 {
		return
	}
	i := g.IntN(len(g.fleet.pools))
	p := g.fleet.pools[i]
	g.fleet.pools = slices.Delete(g.fleet.pools, i, i+1)
	step := Step{Say: "The driver withdraws pool " + p.name + ".", Rest: g.chance(60)}
	for _, slice := range p.slices {
		step.Delete = append(step.Delete, Deletion{Ref: refTo(slice)})
	}
	g.story.addStep(step)
}

// nextGeneration returns copies of the slices of a pool, which have its next generation.
func (p *pool) nextGeneration() []*resourcev1.ResourceSlice {
	var next []*resourcev1.ResourceSlice
	for _, slice := range p.slices {
		slice.Spec.Pool.Generation++
		next = append(next, slice.DeepCopy())
	}
	return next
}

// changeDevices has devices of a pool go, come, or change.
func (g *fleetMaker) changeDevices(p *pool) {
	slice := choose(g, p.slices...)
	devices := slice.Spec.Devices
	if len(devices) == 0 {
		return
	}
	i := g.IntN(len(devices))
	switch {
	case len(devices) > 1 && g.chance(35):
		slice.Spec.Devices = slices.Delete(slices.Clone(devices), i, i+1)
	case p.driver.flavor != partitionedDevices && g.chance(40):
		slice.Spec.Devices = append(slice.Spec.Devices, g.newDeviceOf(p, p.unusedIndex()))
	case g.features.DeviceTaints && g.chance(50):
		p.driver.isTainted = true
		devices[i].Taints = []resourcev1.DeviceTaint{g.newTaint()}
	default:
		devices[i].Attributes["model"] = resourcev1.DeviceAttribute{StringValue: new(choose(g, "a", "b"))}
		devices[i].Attributes[domain+"/numa"] = resourcev1.DeviceAttribute{IntValue: new(int64(g.IntN(2)))}
	}
}

// newDeviceOf makes a device for a pool that exists.
func (g *fleetMaker) newDeviceOf(p *pool, index int) resourcev1.Device {
	device := g.newDevice(p.driver, index)
	if p.slices[0].Spec.PerDeviceNodeSelection != nil {
		g.attachDevice(&device)
	}
	return device
}

// unusedIndex returns an index that is above those of all devices.
func (p *pool) unusedIndex() int {
	unused := 0
	for _, slice := range p.slices {
		for i := range slice.Spec.Devices {
			if index := slice.Spec.Devices[i].Attributes["index"].IntValue; index != nil {
				unused = max(unused, int(*index)+1)
			}
		}
	}
	return unused
}
