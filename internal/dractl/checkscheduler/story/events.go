package story

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// addEvent has something happen to the Pods, the nodes, the devices or the claims. What cannot happen at the moment
// adds no step.
func (g *generator) addEvent() {
	events := []func(){
		func() { g.addPods(g.between(1, 3)) },
		g.endPods, g.deletePods, g.terminatePod, g.recreatePod, g.preemptPods,
		g.drainNode, g.removeNode,
		g.replacePool, g.replacePool, g.replacePoolSlowly, g.deletePool, g.changeClass,
		g.makeClaimLate, g.deleteClaim,
	}
	if g.features.TaintRuleVersion != "" {
		events = append(events, g.taintByRule, g.taintByRule)
	}
	if g.features.PodGroups {
		events = append(events, g.addPodGroup, g.addPodGroup)
	}
	choose(g, events...)()
}

// takePod takes a random Pod out of those that are there.
func (g *loadMaker) takePod() *corev1.Pod {
	if len(g.load.pods) == 0 {
		return nil
	}
	i := g.IntN(len(g.load.pods))
	pod := g.load.pods[i]
	g.load.pods = slices.Delete(g.load.pods, i, i+1)
	return pod
}

func (g *loadMaker) takePods(most int) (pods []*corev1.Pod, names []string) {
	for range g.between(1, most) {
		if pod := g.takePod(); pod != nil {
			pods, names = append(pods, pod), append(names, pod.Name)
		}
	}
	return pods, names
}

// endPods has the containers of Pods end. A Pod that shares a claim does not end but is deleted: while another Pod uses
// the claim, the controller would reserve it for the Pod that has ended, and remove the reservation, without end.
func (g *generator) endPods() {
	pods, names := g.takePods(3)
	if len(pods) == 0 {
		return
	}
	step := Step{Say: sayOf(names) + " end.", Rest: g.chance(60)}
	for _, pod := range pods {
		if g.sharesClaim(pod) {
			step.Delete = append(step.Delete, Deletion{Ref: refTo(pod)})
			continue
		}
		step.Patch = append(step.Patch, Patch{Ref: refTo(pod), Subresource: "status", Merge: `{"status": {"phase": "Succeeded"}}`})
	}
	g.story.addStep(step)
}

// sharesClaim reports whether others use a claim of a Pod, or may use it later.
func (g *loadMaker) sharesClaim(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		return c.ResourceClaimName != nil && slices.Contains(g.load.sharedClaims, *c.ResourceClaimName)
	})
}

func (g *generator) deletePods() {
	pods, names := g.takePods(3)
	if len(pods) == 0 {
		return
	}
	step := Step{Say: sayOf(names) + " are deleted.", Rest: g.chance(60)}
	for _, pod := range pods {
		step.Delete = append(step.Delete, Deletion{Ref: refTo(pod)})
	}
	g.story.addStep(step)
}

// terminatePod has a Pod be deleted, and its containers stop only after others have come.
func (g *generator) terminatePod() {
	pod := g.takePod()
	if pod == nil {
		return
	}
	g.story.addStep(Step{Say: pod.Name + " is deleted, but its containers do not stop.", Delete: []Deletion{{Ref: refTo(pod), IsGraceful: true}}, Rest: g.chance(30)})
	g.addPods(g.between(1, 2))
	g.story.addStep(Step{Say: "The containers of " + pod.Name + " stop.", Delete: []Deletion{{Ref: refTo(pod)}}, Rest: g.chance(60)})
}

// recreatePod deletes a Pod, and makes another with the same name.
func (g *generator) recreatePod() {
	pod := g.takePod()
	if pod == nil {
		return
	}
	g.load.pods = append(g.load.pods, pod)
	g.story.addStep(Step{Say: pod.Name + " is deleted.", Delete: []Deletion{{Ref: refTo(pod)}}})
	g.story.addStep(Step{Say: pod.Name + " comes back.", Create: Objects{pod.DeepCopy()}, Rest: g.chance(60)})
}

// preemptPods has an important Pod come that wants all CPUs of a node, after less important ones that want most of them.
func (g *generator) preemptPods() {
	if g.load.madePods > maxPods-3 {
		return
	}
	step := Step{Say: "Pods use the CPUs of nodes.", Create: g.usePriorities(), Rest: true}
	for range 2 {
		pod, objects := g.newPod()
		requestCPU(pod, "3")
		step.Create = append(append(step.Create, objects...), pod)
	}
	g.story.addStep(step)
	important := Step{Rest: g.chance(70)}
	pod, objects := g.newPod()
	requestCPU(pod, "4")
	pod.Spec.PriorityClassName = g.id + "-important"
	important.Say = pod.Name + " is more important, and wants all CPUs of a node."
	important.Create = append(append(important.Create, objects...), pod)
	g.story.addStep(important)
}

func requestCPU(pod *corev1.Pod, cpu string) {
	resources := &pod.Spec.Containers[0].Resources
	if resources.Requests == nil {
		resources.Requests = corev1.ResourceList{}
	}
	resources.Requests[corev1.ResourceCPU] = parseAmount(cpu)
}

// drainNode drains a node, which may be used again later.
func (g *generator) drainNode() {
	node := choose(g, g.fleet.nodes...)
	g.story.addStep(Step{Say: "Node " + node.Name + " is drained.", Drain: []string{node.Name}, Rest: g.chance(70)})
	if g.chance(50) {
		g.story.addStep(Step{
			Say: "Node " + node.Name + " can be used again.", Rest: g.chance(50),
			Patch: []Patch{{Ref: refTo(node), Merge: `{"spec": {"unschedulable": false}}`}},
		})
	}
}

// removeNode removes a node with its Pods and devices. One remains.
func (g *generator) removeNode() {
	if len(g.fleet.nodes) < 2 {
		return
	}
	i := g.IntN(len(g.fleet.nodes))
	node := g.fleet.nodes[i]
	g.fleet.nodes = slices.Delete(g.fleet.nodes, i, i+1)
	g.story.addStep(Step{Say: "Node " + node.Name + " is drained.", Drain: []string{node.Name}})
	step := Step{Say: "Node " + node.Name + " goes.", Rest: g.chance(60), Delete: []Deletion{{Ref: refTo(node)}}}
	g.fleet.pools = slices.DeleteFunc(g.fleet.pools, func(p *pool) bool {
		if p.node != node.Name {
			return false
		}
		for _, slice := range p.slices {
			step.Delete = append(step.Delete, Deletion{Ref: refTo(slice)})
		}
		return true
	})
	g.story.addStep(step)
}

// changeClass narrows a class.
func (g *generator) changeClass() {
	d := choose(g, g.fleet.drivers...)
	class := g.newClass(d)
	class.Spec.Selectors = append(class.Spec.Selectors, g.newSelector(d))
	g.story.addStep(Step{Say: "Class " + class.Name + " changes.", Replace: Objects{class}, Rest: g.chance(50)})
}

// makeClaimLate has a Pod come before the claim that it names.
func (g *generator) makeClaimLate() {
	if g.load.hasQuota || g.load.madePods >= maxPods {
		return
	}
	pod, objects := g.newPod()
	isClaim := func(object Object) bool { return refTo(object).Kind == "ResourceClaim" }
	before := slices.DeleteFunc(slices.Clone(objects), isClaim)
	after := slices.DeleteFunc(slices.Clone(objects), func(object Object) bool { return !isClaim(object) })
	g.story.addStep(Step{Say: pod.Name + " comes before its claims.", Create: append(before, pod), Rest: g.chance(30)})
	if len(after) > 0 {
		g.story.addStep(Step{Say: "The claims of " + pod.Name + " are made.", Create: after, Rest: g.chance(60)})
	}
}

// deleteClaim deletes a claim that was made by hand, which may be in use. It is made again once its Pods are gone.
func (g *generator) deleteClaim() {
	claims := g.load.usableClaims()
	if len(claims) == 0 {
		return
	}
	name := choose(g, claims...)
	claim := &resourcev1.ResourceClaim{TypeMeta: typeOf(resourceVersion, "ResourceClaim"), ObjectMeta: g.namespacedMeta(name)}
	g.story.addStep(Step{Say: "Claim " + name + " is deleted.", Delete: []Deletion{{Ref: refTo(claim)}}, Rest: g.chance(40)})
	if g.chance(50) {
		g.load.deletedClaims = append(g.load.deletedClaims, name)
		return
	}
	step := Step{Say: "Claim " + name + " is made again, after its Pods were deleted.", Rest: g.chance(60)}
	users := Step{Say: "The Pods with claim " + name + " are deleted."}
	g.load.pods = slices.DeleteFunc(g.load.pods, func(pod *corev1.Pod) bool {
		isUser := slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			return c.ResourceClaimName != nil && *c.ResourceClaimName == name
		})
		if isUser {
			users.Delete = append(users.Delete, Deletion{Ref: refTo(pod)})
		}
		return isUser
	})
	if len(users.Delete) > 0 {
		g.story.addStep(users)
	}
	claim.Spec = g.newClaimSpec()
	step.Create = Objects{claim}
	g.story.addStep(step)
}

// taintByRule taints devices by a rule, which may go again.
func (g *generator) taintByRule() {
	rule := &resourcev1.DeviceTaintRule{TypeMeta: typeOf("resource.k8s.io/"+g.features.TaintRuleVersion, "DeviceTaintRule")}
	rule.ObjectMeta = g.clusterMeta(fmt.Sprintf("rule-%d", len(g.story.Steps)))
	p := choose(g, g.fleet.pools...)
	rule.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Driver: &p.driver.name}
	if g.chance(70) {
		rule.Spec.DeviceSelector.Pool = &p.name
		if devices := p.slices[0].Spec.Devices; len(devices) > 0 && g.chance(50) {
			rule.Spec.DeviceSelector.Device = new(choose(g, devices...).Name)
		}
	}
	rule.Spec.Taint = g.newTaint()
	g.story.addStep(Step{Say: "A rule taints devices of " + p.driver.name + ".", Create: Objects{rule}, Rest: g.chance(60)})
	for _, d := range g.fleet.drivers {
		d.isTainted = d.isTainted || d == p.driver
	}
	if g.chance(40) {
		g.story.addStep(Step{Say: "The rule goes.", Delete: []Deletion{{Ref: refTo(rule)}}, Rest: g.chance(60)})
	}
}
