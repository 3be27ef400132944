package drajudge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// extendedClaimName is the name of the claim for the extended resources of a Pod that waits, which nobody has made yet.
const extendedClaimName = "extended resources"

// classFor returns the class whose devices provide an extended resource: the newest one, and among several of the same age the
// first by name.
func (s *supply) classFor(name corev1.ResourceName) *resourcev1.DeviceClass {
	if implicit, isImplicit := strings.CutPrefix(string(name), resourcev1.ResourceDeviceClassPrefix); isImplicit {
		return s.class(implicit)
	}
	var found *resourcev1.DeviceClass
	for _, object := range s.objects {
		class, isClass := object.(*resourcev1.DeviceClass)
		if !isClass || class.Spec.ExtendedResourceName == nil || *class.Spec.ExtendedResourceName != string(name) {
			continue
		}
		if found == nil || cmp.Or(found.CreationTimestamp.Compare(class.CreationTimestamp.Time), cmp.Compare(class.Name, found.Name)) < 0 {
			found = class
		}
	}
	return found
}

// deviceResourcesOf returns the extended resources that a Pod asks for and that devices of a class provide.
func (s *supply) deviceResourcesOf(pod *corev1.Pod) map[corev1.ResourceName]*resourcev1.DeviceClass {
	resources := map[corev1.ResourceName]*resourcev1.DeviceClass{}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name, quantity := range container.Resources.Requests {
			// Native resources have no domain.
			if quantity.Sign() > 0 && strings.Contains(string(name), "/") {
				if class := s.classFor(name); class != nil {
					resources[name] = class
				}
			}
		}
	}
	return resources
}

// providesResource reports whether a node has an extended resource itself, so that no devices are needed.
func providesResource(node *corev1.Node, name corev1.ResourceName) bool {
	quantity := node.Status.Allocatable[name]
	return quantity.Sign() > 0
}

// extendedClaim returns the claim for the extended resources that a Pod needs on a node and that the node does not have itself,
// or nil if there are none, and the names of these. Init containers count as if they ran all the time.
func (s *supply) extendedClaim(pod *corev1.Pod, node *corev1.Node) (claim *resourcev1.ResourceClaim, provided map[corev1.ResourceName]bool) {
	classes := s.deviceResourcesOf(pod)
	maps.DeleteFunc(classes, func(name corev1.ResourceName, _ *resourcev1.DeviceClass) bool { return providesResource(node, name) })
	if len(classes) == 0 {
		return nil, nil
	}
	provided = map[corev1.ResourceName]bool{}
	claim = &resourcev1.ResourceClaim{}
	claim.Namespace, claim.Name = pod.Namespace, extendedClaimName
	for i, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for j, name := range slices.Sorted(maps.Keys(container.Resources.Requests)) {
			quantity := container.Resources.Requests[name]
			if classes[name] == nil || quantity.Sign() <= 0 {
				continue
			}
			provided[name] = true
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{
				Name: fmt.Sprintf("container-%d-request-%d", i, j),
				Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: classes[name].Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: quantity.Value(),
				},
			})
		}
	}
	return claim, provided
}

// checkExtendedResources checks that a Pod that is bound has devices for the extended resources that its node lacks.
func (o *Observer) checkExtendedResources(pod *corev1.Pod) []Violation {
	node := o.supply.nodes[pod.Spec.NodeName]
	classes := o.supply.deviceResourcesOf(pod)
	if node == nil || len(classes) == 0 {
		return nil
	}
	var claim *resourcev1.ResourceClaim
	var mappings []corev1.ContainerExtendedResourceRequest
	objects := []Object{nameObject("Pod", pod)}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		mappings = status.RequestMappings
		if claim = o.claims[key{"ResourceClaim", pod.Namespace, status.ResourceClaimName}]; claim != nil {
			objects = append(objects, nameObject("ResourceClaim", claim))
		}
	}
	var violations []Violation
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, name := range slices.Sorted(maps.Keys(container.Resources.Requests)) {
			wanted := container.Resources.Requests[name]
			if classes[name] == nil || wanted.Sign() <= 0 || providesResource(node, name) {
				continue
			}
			given := resource.NewQuantity(countMapped(claim, mappings, container.Name, name, classes[name].Name), resource.DecimalSI)
			if given.Cmp(wanted) < 0 {
				violations = append(violations, o.violation(extendedResources, objects, "container %s asks for %s of %s, node %s has none, and the Pod's claim asks for %s devices of class %s instead",
					container.Name, &wanted, name, node.Name, given, classes[name].Name))
			}
		}
	}
	return violations
}

// countMapped counts the devices of a class that a claim asks for on behalf of an extended resource of a container.
func countMapped(claim *resourcev1.ResourceClaim, mappings []corev1.ContainerExtendedResourceRequest, container string, name corev1.ResourceName, class string) int64 {
	if claim == nil {
		return 0
	}
	count := int64(0)
	requests := requestsOf(claim)
	for _, mapping := range mappings {
		if mapping.ContainerName != container || mapping.ResourceName != string(name) {
			continue
		}
		if i := slices.IndexFunc(requests, func(r request) bool { return r.name == mapping.RequestName && r.DeviceClassName == class }); i >= 0 {
			count += requests[i].Count
		}
	}
	return count
}
