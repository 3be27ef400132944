package story

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// removeDangling removes from a story what refers to objects, requests or counters that it does not have, and steps
// that do nothing. Pools miss as many slices as they did.
func removeDangling(s *Story, missing map[poolGeneration]int64) {
	for {
		before := s.countEntries()
		created := createdObjects(s)
		for i := range s.Steps {
			removeDanglingObjects(&s.Steps[i].Create, created)
			removeDanglingObjects(&s.Steps[i].Replace, created)
		}
		removeImpossible(s)
		if s.countEntries() == before {
			break
		}
	}
	setSliceCounts(s, missing)
	removeUselessSteps(s)
}

// countEntries counts what removeDangling can remove besides what is within an object, which makes no object go.
func (s *Story) countEntries() int {
	size := 0
	for i := range s.Steps {
		step := &s.Steps[i]
		size += len(step.Create) + len(step.Replace) + len(step.Patch) + len(step.Delete) + len(step.Drain)
	}
	return size
}

// catalog has the objects that a story makes at some time.
type catalog struct {
	refs map[Ref]bool
	// extendedResources are those of classes.
	extendedResources map[corev1.ResourceName]bool
	// counters are the counter sets of pools, by driver, pool and set.
	counters map[[3]string]bool
}

func createdObjects(s *Story) *catalog {
	c := &catalog{refs: map[Ref]bool{}, extendedResources: map[corev1.ResourceName]bool{}, counters: map[[3]string]bool{}}
	for i := range s.Steps {
		for _, object := range slices.Concat(s.Steps[i].Create, s.Steps[i].Replace) {
			ref := refTo(object)
			c.refs[Ref{Kind: ref.Kind, Name: ref.Name}] = true
			switch object := object.(type) {
			case *resourcev1.DeviceClass:
				if name := object.Spec.ExtendedResourceName; name != nil {
					c.extendedResources[corev1.ResourceName(*name)] = true
				}
			case *resourcev1.ResourceSlice:
				for _, set := range object.Spec.SharedCounters {
					c.counters[[3]string{object.Spec.Driver, object.Spec.Pool.Name, set.Name}] = true
				}
			}
		}
	}
	return c
}

func (c *catalog) has(kind, name string) bool { return c.refs[Ref{Kind: kind, Name: name}] }

// removeDanglingObjects removes objects that cannot be without others, and what refers to others within those that can.
func removeDanglingObjects(objects *Objects, c *catalog) {
	*objects = slices.DeleteFunc(*objects, func(object Object) bool {
		switch object := object.(type) {
		case *resourcev1.ResourceSlice:
			return c.mendSlice(&object.Spec)
		case *resourcev1.ResourceClaim:
			return c.mendClaim(&object.Spec.Devices)
		case *resourcev1.ResourceClaimTemplate:
			return c.mendClaim(&object.Spec.Spec.Devices)
		case *schedulingv1beta1.PodGroup:
			c.mendPodGroup(object)
		case *corev1.Pod:
			c.mendPod(&object.Spec)
		}
		return false
	})
}

// mendSlice reports whether the node of a slice is missing.
func (c *catalog) mendSlice(spec *resourcev1.ResourceSliceSpec) bool {
	isMissing := func(node *string) bool { return node != nil && !c.has("Node", *node) }
	spec.Devices = slices.DeleteFunc(spec.Devices, func(d resourcev1.Device) bool { return isMissing(d.NodeName) })
	for i := range spec.Devices {
		device := &spec.Devices[i]
		device.ConsumesCounters = slices.DeleteFunc(device.ConsumesCounters, func(consumption resourcev1.DeviceCounterConsumption) bool {
			return !c.counters[[3]string{spec.Driver, spec.Pool.Name, consumption.CounterSet}]
		})
	}
	return isMissing(spec.NodeName)
}

// mendClaim removes requests without a class, and reports whether none is left.
func (c *catalog) mendClaim(spec *resourcev1.DeviceClaim) bool {
	for i := range spec.Requests {
		spec.Requests[i].FirstAvailable = slices.DeleteFunc(spec.Requests[i].FirstAvailable, func(way resourcev1.DeviceSubRequest) bool {
			return !c.has("DeviceClass", way.DeviceClassName)
		})
	}
	spec.Requests = slices.DeleteFunc(spec.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly == nil && len(r.FirstAvailable) == 0 || r.Exactly != nil && !c.has("DeviceClass", r.Exactly.DeviceClassName)
	})
	spec.Constraints = withRequests(spec.Requests, spec.Constraints, func(constraint *resourcev1.DeviceConstraint) *[]string { return &constraint.Requests })
	spec.Config = withRequests(spec.Requests, spec.Config, func(config *resourcev1.DeviceClaimConfiguration) *[]string { return &config.Requests })
	return len(spec.Requests) == 0
}

// withRequests removes the names of missing requests, and elements that then have none. One without names is for all.
func withRequests[T any](requests []resourcev1.DeviceRequest, list []T, namesOf func(*T) *[]string) []T {
	var kept []T
	for i := range list {
		names := namesOf(&list[i])
		isForAll := len(*names) == 0
		*names = slices.DeleteFunc(*names, func(name string) bool { return !hasRequest(requests, name) })
		if isForAll || len(*names) > 0 {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// hasRequest reports whether a claim has a request, or one of its ways as in request/way.
func hasRequest(requests []resourcev1.DeviceRequest, name string) bool {
	request, way, hasWay := strings.Cut(name, "/")
	return slices.ContainsFunc(requests, func(r resourcev1.DeviceRequest) bool {
		return r.Name == request && (!hasWay || slices.ContainsFunc(r.FirstAvailable, func(sub resourcev1.DeviceSubRequest) bool { return sub.Name == way }))
	})
}

// mendPod removes what a Pod asks for and nobody has.
func (c *catalog) mendPod(spec *corev1.PodSpec) {
	spec.ResourceClaims = slices.DeleteFunc(spec.ResourceClaims, func(claim corev1.PodResourceClaim) bool {
		if claim.ResourceClaimName != nil {
			return !c.has("ResourceClaim", *claim.ResourceClaimName)
		}
		return !c.has("ResourceClaimTemplate", *claim.ResourceClaimTemplateName)
	})
	for i := range spec.Containers {
		resources := &spec.Containers[i].Resources
		resources.Claims = slices.DeleteFunc(resources.Claims, func(claim corev1.ResourceClaim) bool {
			return !slices.ContainsFunc(spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == claim.Name })
		})
		for name := range resources.Limits { // only extended resources have limits
			if !c.extendedResources[name] {
				delete(resources.Limits, name)
				delete(resources.Requests, name)
			}
		}
	}
	if group := spec.SchedulingGroup; group != nil && !c.has("PodGroup", *group.PodGroupName) {
		spec.SchedulingGroup = nil
	}
	if !c.has("PriorityClass", spec.PriorityClassName) {
		spec.PriorityClassName = ""
	}
}

// removeImpossible removes changes of objects that do not exist at that time, and creations of objects that do.
func removeImpossible(s *Story) {
	existing := map[Ref]bool{}
	for i := range s.Steps {
		step := &s.Steps[i]
		step.Create = slices.DeleteFunc(step.Create, func(object Object) bool {
			exists := existing[refTo(object)]
			existing[refTo(object)] = true
			return exists
		})
		step.Replace = slices.DeleteFunc(step.Replace, func(object Object) bool { return !existing[refTo(object)] })
		step.Patch = slices.DeleteFunc(step.Patch, func(patch Patch) bool { return !existing[patch.Ref] })
		step.Delete = slices.DeleteFunc(step.Delete, func(deletion Deletion) bool {
			exists := existing[deletion.Ref]
			existing[deletion.Ref] = exists && deletion.IsGraceful
			return !exists
		})
		step.Drain = slices.DeleteFunc(step.Drain, func(node string) bool { return !existing[Ref{"v1", "Node", node}] })
	}
}

// removeUselessSteps removes steps that do nothing, or that rest while all is at rest. The last one rests.
func removeUselessSteps(s *Story) {
	var kept []Step
	for i := range s.Steps {
		step := s.Steps[i]
		isIdle := len(step.Create)+len(step.Replace)+len(step.Patch)+len(step.Delete)+len(step.Drain) == 0
		switch {
		case !isIdle:
			kept = append(kept, step)
		case step.Rest && !kept[len(kept)-1].Rest:
			kept[len(kept)-1].Rest, kept[len(kept)-1].Answer = true, step.Answer
		}
	}
	kept[len(kept)-1].Rest = true
	s.Steps = kept
}

// poolGeneration is a pool as one generation of it has it.
type poolGeneration struct {
	driver, pool string
	generation   int64
}

// countSlices counts the slices of each pool that a story makes.
func countSlices(s *Story) map[poolGeneration]int64 {
	names := map[poolGeneration]map[string]bool{}
	counts := map[poolGeneration]int64{}
	for slice := range s.eachSlice() {
		id := generationOf(slice)
		if names[id] == nil {
			names[id] = map[string]bool{}
		}
		names[id][slice.Name] = true
		counts[id] = int64(len(names[id]))
	}
	return counts
}

func generationOf(slice *resourcev1.ResourceSlice) poolGeneration {
	return poolGeneration{slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Pool.Generation}
}

// eachSlice yields all slices that are created and replaced.
func (s *Story) eachSlice() func(yield func(*resourcev1.ResourceSlice) bool) {
	return func(yield func(*resourcev1.ResourceSlice) bool) {
		for i := range s.Steps {
			for _, object := range slices.Concat(s.Steps[i].Create, s.Steps[i].Replace) {
				if slice, isSlice := object.(*resourcev1.ResourceSlice); isSlice && !yield(slice) {
					return
				}
			}
		}
	}
}

// missingSlices returns how many slices pools lack.
func missingSlices(s *Story) map[poolGeneration]int64 {
	missing := map[poolGeneration]int64{}
	counts := countSlices(s)
	for slice := range s.eachSlice() {
		id := generationOf(slice)
		missing[id] = slice.Spec.Pool.ResourceSliceCount - counts[id]
	}
	return missing
}

func setSliceCounts(s *Story, missing map[poolGeneration]int64) {
	counts := countSlices(s)
	for slice := range s.eachSlice() {
		id := generationOf(slice)
		slice.Spec.Pool.ResourceSliceCount = counts[id] + missing[id]
	}
}
