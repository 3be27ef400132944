package story

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// load is what runs, or wants to, at some moment of the story.
type load struct {
	// hasAdminAccess says that the namespace permits admin access.
	hasAdminAccess bool
	// hasQuota says that only templates make claims: the API server would refuse some that are made by hand.
	hasQuota bool
	// sharedClaims and templates are the names of those that Pods can use besides their own.
	sharedClaims, templates []string
	// deletedClaims are shared claims that were deleted for good.
	deletedClaims []string
	pods          []*corev1.Pod
	// These count Pods, claims and templates for their names.
	madePods, madeClaims, madeTemplates int
	hasPriorities                       bool
}

// usableClaims returns the shared claims that exist.
func (l *load) usableClaims() []string {
	return slices.DeleteFunc(slices.Clone(l.sharedClaims), func(name string) bool { return slices.Contains(l.deletedClaims, name) })
}

// createLoad has the first Pods come, in one or two batches.
func (g *generator) createLoad() {
	if g.features.Quotas && g.chance(20) {
		g.load.hasQuota = true
		g.story.addStep(Step{Say: "A quota limits the devices of claims.", Create: Objects{g.newQuota()}})
	}
	for range g.between(1, 2) {
		g.addPods(g.between(2, 4))
	}
}

// newQuota limits the devices of a class.
func (g *loadMaker) newQuota() *corev1.ResourceQuota {
	quota := &corev1.ResourceQuota{TypeMeta: typeOf("v1", "ResourceQuota"), ObjectMeta: g.namespacedMeta("quota")}
	class := choose(g, g.fleet.drivers...).class
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourceName(class + corev1.ResourceClaimsPerClass): parseAmount(choose(g, "2", "3", "4"))}
	return quota
}

// addPods adds a step in which Pods come with their claims.
func (g *generator) addPods(count int) {
	step := Step{Rest: g.chance(60)}
	var names []string
	for range min(count, maxPods-g.load.madePods) {
		pod, objects := g.newPod()
		step.Create = append(append(step.Create, objects...), pod)
		names = append(names, pod.Name)
	}
	if len(names) == 0 {
		return
	}
	step.Say = sayOf(names) + " come."
	g.story.addStep(step)
}

// newBarePod makes a Pod without claims.
func (g *loadMaker) newBarePod() *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: typeOf("v1", "Pod"), ObjectMeta: g.namespacedMeta(fmt.Sprintf("pod-%d", g.load.madePods))}
	g.load.madePods++
	g.load.pods = append(g.load.pods, pod)
	pod.Spec = corev1.PodSpec{
		ServiceAccountName: accountName, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(0)),
		NodeSelector: map[string]string{Label: g.id},
		Containers:   []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
	}
	if g.chance(30) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "side", Image: "registry.k8s.io/pause:3.10"})
	}
	if g.chance(25) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: parseAmount(choose(g, "1", "2500m"))}
	}
	if g.chance(30) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: domain + "/reserved", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	return pod
}

// newPod makes a Pod, and the claims and templates that it needs and do not exist.
func (g *loadMaker) newPod() (*corev1.Pod, Objects) {
	pod := g.newBarePod()
	if i := slices.IndexFunc(g.fleet.drivers, func(d *driver) bool { return d.extendedResource != "" }); i >= 0 && g.chance(40) {
		requestExtended(pod, g.fleet.drivers[i].extendedResource, choose(g, "1", "1", "2"))
		if g.chance(70) {
			return pod, nil
		}
	}
	var made Objects
	for i := range choose(g, 1, 1, 1, 2) {
		reference, objects := g.newClaimReference(fmt.Sprintf("claim-%d", i))
		made = append(made, objects...)
		if reference.ResourceClaimName != nil && slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			return c.ResourceClaimName != nil && *c.ResourceClaimName == *reference.ResourceClaimName
		}) {
			continue // a Pod has a claim once
		}
		useClaim(pod, reference, func(container int) bool { return container == 0 || g.chance(60) })
	}
	return pod, made
}

// useClaim gives a Pod a claim, which some of its containers use.
func useClaim(pod *corev1.Pod, reference corev1.PodResourceClaim, uses func(container int) bool) {
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, reference)
	for i := range pod.Spec.Containers {
		if uses(i) {
			resources := &pod.Spec.Containers[i].Resources
			resources.Claims = append(resources.Claims, corev1.ResourceClaim{Name: reference.Name})
		}
	}
}

// requestExtended has the first container of a Pod ask for an extended resource.
func requestExtended(pod *corev1.Pod, name, count string) {
	resources := &pod.Spec.Containers[0].Resources
	if resources.Requests == nil {
		resources.Requests = corev1.ResourceList{}
	}
	resources.Requests[corev1.ResourceName(name)] = parseAmount(count)
	resources.Limits = corev1.ResourceList{corev1.ResourceName(name): parseAmount(count)}
}

// newClaimReference refers to a claim or a template, which others use too, or is made.
func (g *loadMaker) newClaimReference(name string) (corev1.PodResourceClaim, Objects) {
	reference := corev1.PodResourceClaim{Name: name}
	if g.load.hasQuota || g.chance(50) {
		if len(g.load.templates) > 0 && g.chance(50) {
			reference.ResourceClaimTemplateName = new(choose(g, g.load.templates...))
			return reference, nil
		}
		template := g.newTemplate()
		reference.ResourceClaimTemplateName = &template.Name
		return reference, Objects{template}
	}
	if claims := g.load.usableClaims(); len(claims) > 0 && g.chance(30) {
		reference.ResourceClaimName = new(choose(g, claims...))
		return reference, nil
	}
	claim := g.newClaim()
	reference.ResourceClaimName = &claim.Name
	return reference, Objects{claim}
}

func (g *loadMaker) newTemplate() *resourcev1.ResourceClaimTemplate {
	template := &resourcev1.ResourceClaimTemplate{
		TypeMeta: typeOf(resourceVersion, "ResourceClaimTemplate"), ObjectMeta: g.namespacedMeta(fmt.Sprintf("template-%d", g.load.madeTemplates)),
	}
	g.load.madeTemplates++
	g.load.templates = append(g.load.templates, template.Name)
	template.Spec.Labels = map[string]string{Label: g.id}
	template.Spec.Spec = g.newClaimSpec()
	return template
}

// newClaim makes a claim. In half of the cases others may use it too.
func (g *loadMaker) newClaim() *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{
		TypeMeta: typeOf(resourceVersion, "ResourceClaim"), ObjectMeta: g.namespacedMeta(fmt.Sprintf("claim-%d", g.load.madeClaims)),
	}
	g.load.madeClaims++
	if g.chance(50) {
		g.load.sharedClaims = append(g.load.sharedClaims, claim.Name)
	}
	claim.Spec = g.newClaimSpec()
	return claim
}

// usePriorities makes the priority class of important Pods, once.
func (g *loadMaker) usePriorities() Objects {
	if g.load.hasPriorities {
		return nil
	}
	g.load.hasPriorities = true
	return Objects{&schedulingv1.PriorityClass{
		TypeMeta: typeOf("scheduling.k8s.io/v1", "PriorityClass"), ObjectMeta: g.clusterMeta("important"), Value: 1000,
	}}
}

// sayOf names objects in a sentence.
func sayOf(names []string) string {
	switch len(names) {
	case 1:
		return names[0]
	case 2:
		return names[0] + " and " + names[1]
	}
	return names[0] + ", " + sayOf(names[1:])
}
