package story

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// ending makes the last steps of a story.
type ending struct{ *generator }

// addEnding ends some stories with what hardly any story comes to by chance. It draws from numbers of its own, so the
// story up to there is the same with and without an ending. answered is the index of the step at which drivers answer, or
// negative.
func (g ending) addEnding(answered int) {
	g.Rand = rand.New(rand.NewPCG(uint64(g.story.Seed), 1))
	if pools := g.fleet.bindingPools(); answered >= 0 && len(pools) > 0 && g.chance(50) {
		g.story.Steps[answered].Answer = "" // one answer for each story: kube-scheduler looks for it every 5 s
		g.refuseBinding(choose(g, pools...))
		return
	}
	pools := slices.DeleteFunc(slices.Clone(g.fleet.pools), func(p *pool) bool { return p.driver.flavor == partitionedDevices })
	if len(pools) == 0 { // devices of cards do not come and go
		return
	}
	if g.chance(20) {
		g.leaveOldGeneration(choose(g, pools...))
		return
	}
	if g.chance(20) {
		g.wantGrowingPool(choose(g, pools...))
	}
}

// bindingPools returns the pools that have devices with binding conditions.
func (f *fleet) bindingPools() []*pool {
	return slices.DeleteFunc(slices.Clone(f.pools), func(p *pool) bool {
		return !slices.ContainsFunc(p.slices, func(slice *resourcev1.ResourceSlice) bool {
			return slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return len(d.BindingConditions) > 0 })
		})
	})
}

// refuseBinding has a Pod come for devices of a pool, and the drivers refuse all devices that wait for them: the scheduler
// has to release these, and to allocate again.
func (g ending) refuseBinding(p *pool) {
	pod, template := g.newPodFor(p, g.chance(50))
	g.story.addStep(Step{Say: pod.Name + " comes, and the drivers refuse to bind Pods to their devices.", Create: Objects{template, pod}, Answer: Failed, Rest: true})
}

// wantGrowingPool has a Pod come for all devices of a pool, of which others have none, while the pool is incomplete. The Pod
// has to wait.
func (g ending) wantGrowingPool(p *pool) {
	if len(g.load.pods) > 0 {
		step := Step{Say: "All Pods are deleted.", Rest: true}
		for _, pod := range g.load.pods {
			step.Delete = append(step.Delete, Deletion{Ref: refTo(pod)})
		}
		g.load.pods = nil
		g.story.addStep(step)
	}
	g.growPool(p, func() {
		g.story.restAfterLast() // what the scheduler decides right after a change may rest on what was before
		pod, template := g.newPodFor(p, true)
		g.story.addStep(Step{Say: pod.Name + " comes for all devices of the pool.", Create: Objects{template, pod}, Rest: true})
	})
	g.story.restAfterLast()
}

// restAfterLast has the story rest after its last step.
func (s *Story) restAfterLast() { s.Steps[len(s.Steps)-1].Rest = true }

// leaveOldGeneration has a driver publish the next generation of a pool in other slices, with other devices, and leave the
// old slices behind. Then a Pod comes for the devices of the pool.
func (g ending) leaveOldGeneration(p *pool) {
	next := p.slices[0].DeepCopy()
	next.ObjectMeta = g.clusterMeta(p.sliceName(g.id, len(p.slices)))
	next.Spec.Pool.Generation++
	next.Spec.Pool.ResourceSliceCount = 1
	next.Spec.Devices = nil
	for i := range g.between(1, 2) {
		next.Spec.Devices = append(next.Spec.Devices, g.newDeviceOf(p, p.unusedIndex()+i))
	}
	g.story.addStep(Step{
		Say:    fmt.Sprintf("The driver publishes generation %d of pool %s with other devices, and leaves the old slices behind.", next.Spec.Pool.Generation, p.name),
		Create: Objects{next}, Rest: true,
	})
	pod, template := g.newPodFor(p, g.chance(50))
	g.story.addStep(Step{Say: pod.Name + " comes for devices of the pool.", Create: Objects{template, pod}, Rest: true})
}

// newPodFor makes a Pod on the node of a pool, if the pool has one, and a template of claims for one or all devices of the
// pool's driver. A quota may refuse claims that are made by hand.
func (g *loadMaker) newPodFor(p *pool, wantsAll bool) (*corev1.Pod, *resourcev1.ResourceClaimTemplate) {
	request := &resourcev1.ExactDeviceRequest{DeviceClassName: p.driver.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	if wantsAll {
		request.AllocationMode, request.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	template := g.newTemplate()
	template.Spec.Spec = resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r0", Exactly: request}}}}
	pod := g.newBarePod()
	useClaim(pod, corev1.PodResourceClaim{Name: "claim-0", ResourceClaimTemplateName: &template.Name}, func(container int) bool { return container == 0 })
	if p.node != "" {
		pod.Spec.NodeSelector[corev1.LabelHostname] = p.node
	}
	return pod, template
}
