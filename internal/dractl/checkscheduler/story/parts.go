package story

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// Parts returns how many parts a story has that can be left out: steps, objects and other changes, and within objects
// devices, taints, requests and their ways, selectors, tolerations, constraints, and claims of Pods.
func (s *Story) Parts() int {
	p := &pruner{}
	p.pruneStory(s.deepCopy())
	return p.next
}

// Without returns the story without some of its parts, which are numbers below Parts, and without what refers to
// them. The parts of the smaller story have numbers of their own.
func (s *Story) Without(parts []int) *Story {
	p := &pruner{leftOut: map[int]bool{}}
	for _, part := range parts {
		p.leftOut[part] = true
	}
	smaller := s.deepCopy()
	counts := missingSlices(smaller)
	p.pruneStory(smaller)
	removeDangling(smaller, counts)
	return smaller
}

// pruner leaves out parts, which it counts in the order in which it meets them.
type pruner struct {
	next    int
	leftOut map[int]bool
}

func (p *pruner) keepsNext() bool {
	keeps := !p.leftOut[p.next]
	p.next++
	return keeps
}

// pruneList leaves out elements of a list. It visits also what is within those that it leaves out, since each part
// has its number whatever else is left out.
func pruneList[T any](p *pruner, list []T, pruneElement func(*T)) []T {
	var kept []T
	for i := range list {
		keeps := p.keepsNext()
		pruneElement(&list[i])
		if keeps {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// pruneWhole leaves out elements that have no parts.
func pruneWhole[T any](p *pruner, list []T) []T {
	return slices.DeleteFunc(list, func(T) bool { return !p.keepsNext() })
}

// pruneStory prunes the steps. The first makes the namespace, so it stays.
func (p *pruner) pruneStory(s *Story) {
	var kept []Step
	for i := range s.Steps {
		keeps := i == 0 || p.keepsNext()
		p.pruneStep(&s.Steps[i], i == len(s.Steps)-1)
		if keeps {
			kept = append(kept, s.Steps[i])
		}
	}
	s.Steps = kept
}

// pruneStep prunes a step. The last one rests, whatever is left out.
func (p *pruner) pruneStep(step *Step, isLast bool) {
	step.Create = slices.DeleteFunc(step.Create, func(object Object) bool {
		isLeftOut := !isSetting(object) && !p.keepsNext()
		p.pruneObject(object)
		return isLeftOut
	})
	step.Replace = pruneList(p, step.Replace, func(object *Object) { p.pruneObject(*object) })
	step.Patch = pruneWhole(p, step.Patch)
	step.Delete = pruneWhole(p, step.Delete)
	step.Drain = pruneWhole(p, step.Drain)
	if step.Rest && !isLast && !p.keepsNext() {
		step.Rest, step.Answer = false, ""
	}
}

// isSetting reports whether all else needs an object.
func isSetting(object Object) bool {
	kind := refTo(object).Kind
	return kind == "Namespace" || kind == "ServiceAccount"
}

func (p *pruner) pruneObject(object Object) {
	switch object := object.(type) {
	case *resourcev1.ResourceSlice:
		object.Spec.Devices = pruneList(p, object.Spec.Devices, func(device *resourcev1.Device) { device.Taints = pruneWhole(p, device.Taints) })
	case *resourcev1.DeviceClass:
		object.Spec.Selectors = pruneWhole(p, object.Spec.Selectors)
		object.Spec.Config = pruneWhole(p, object.Spec.Config)
	case *resourcev1.ResourceClaim:
		p.pruneClaim(&object.Spec.Devices)
	case *resourcev1.ResourceClaimTemplate:
		p.pruneClaim(&object.Spec.Spec.Devices)
	case *corev1.Pod:
		p.prunePod(&object.Spec)
	case *schedulingv1beta1.PodGroup:
		object.Spec.ResourceClaims = pruneWhole(p, object.Spec.ResourceClaims)
	case *corev1.Node:
		object.Spec.Taints = pruneWhole(p, object.Spec.Taints)
	}
}

func (p *pruner) pruneClaim(spec *resourcev1.DeviceClaim) {
	spec.Requests = pruneList(p, spec.Requests, func(request *resourcev1.DeviceRequest) {
		if exactly := request.Exactly; exactly != nil {
			exactly.Selectors, exactly.Tolerations = pruneWhole(p, exactly.Selectors), pruneWhole(p, exactly.Tolerations)
			if exactly.Capacity != nil && !p.keepsNext() {
				exactly.Capacity = nil
			}
			return
		}
		request.FirstAvailable = pruneList(p, request.FirstAvailable, func(way *resourcev1.DeviceSubRequest) {
			way.Selectors, way.Tolerations = pruneWhole(p, way.Selectors), pruneWhole(p, way.Tolerations)
		})
	})
	spec.Constraints = pruneWhole(p, spec.Constraints)
	spec.Config = pruneWhole(p, spec.Config)
}

func (p *pruner) prunePod(spec *corev1.PodSpec) {
	spec.ResourceClaims = pruneWhole(p, spec.ResourceClaims)
	spec.Tolerations = pruneWhole(p, spec.Tolerations)
	if len(spec.Containers) > 1 {
		spec.Containers = append(spec.Containers[:1:1], pruneWhole(p, spec.Containers[1:])...)
	}
	for i := range spec.Containers {
		resources := &spec.Containers[i].Resources
		if cpu := corev1.ResourceCPU; !resources.Requests.Cpu().IsZero() && !p.keepsNext() {
			delete(resources.Requests, cpu)
		}
	}
}
