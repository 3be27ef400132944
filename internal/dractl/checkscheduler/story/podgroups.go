package story

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// podGroupVersion is the version of PodGroups, of which older ones differ.
const podGroupVersion = "scheduling.k8s.io/v1beta1"

// addPodGroup has the Pods of a group come, which are placed together or not at all. At times they share a claim that
// is reserved for the group.
func (g *generator) addPodGroup() {
	count := g.between(2, 3)
	if g.load.madePods+count > maxPods {
		return
	}
	group := &schedulingv1beta1.PodGroup{TypeMeta: typeOf(podGroupVersion, "PodGroup"), ObjectMeta: g.namespacedMeta(fmt.Sprintf("group-%d", g.load.madePods))}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(count)}
	var shared []corev1.PodResourceClaim
	step := Step{Say: fmt.Sprintf("The %d Pods of %s come.", count, group.Name), Rest: g.chance(60)}
	if g.chance(60) {
		template := g.newTemplate()
		step.Create = append(step.Create, template)
		shared = []corev1.PodResourceClaim{{Name: "shared", ResourceClaimTemplateName: &template.Name}}
		group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "shared", ResourceClaimTemplateName: &template.Name}}
	}
	step.Create = append(step.Create, group)
	for range count {
		pod, objects := g.newPod()
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group.Name}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, shared...)
		for _, claim := range shared {
			resources := &pod.Spec.Containers[0].Resources
			resources.Claims = append(resources.Claims, corev1.ResourceClaim{Name: claim.Name})
		}
		step.Create = append(append(step.Create, objects...), pod)
	}
	g.load.pods = g.load.pods[:len(g.load.pods)-count] // no event takes one of them alone
	g.story.addStep(step)
}

// mendPodGroup removes claims of a group that are made of templates which the story does not have.
func (c *catalog) mendPodGroup(group *schedulingv1beta1.PodGroup) {
	group.Spec.ResourceClaims = slices.DeleteFunc(group.Spec.ResourceClaims, func(claim schedulingv1beta1.PodGroupResourceClaim) bool {
		return !c.has("ResourceClaimTemplate", *claim.ResourceClaimTemplateName)
	})
}
