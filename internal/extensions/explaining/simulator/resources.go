package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// usage is what the Pods on a node take of what the node itself has.
type usage struct {
	pods      int
	requested corev1.ResourceList
	ports     []hostPort
}

// hostPort is a port of a node that a container has.
type hostPort struct {
	protocol corev1.Protocol
	ip       string
	port     int32
}

// allAddresses is the IP of a port that a container has on all addresses of its node.
const allAddresses = "0.0.0.0"

// overlaps reports whether two containers cannot have their ports on one node.
func (h hostPort) overlaps(other hostPort) bool {
	return h.protocol == other.protocol && h.port == other.port && (h.ip == other.ip || h.ip == allAddresses || other.ip == allAddresses)
}

// add counts a Pod.
func (u *usage) add(requests corev1.ResourceList, ports []hostPort) {
	u.pods++
	u.ports = append(u.ports, ports...)
	if u.requested == nil {
		u.requested = corev1.ResourceList{}
	}
	for name, quantity := range requests {
		sum := u.requested[name]
		sum.Add(quantity)
		u.requested[name] = sum
	}
}

// remove undoes add.
func (u *usage) remove(requests corev1.ResourceList, ports []hostPort) {
	u.pods--
	for name, quantity := range requests {
		sum := u.requested[name]
		sum.Sub(quantity)
		u.requested[name] = sum
	}
	for _, port := range ports {
		if i := slices.Index(u.ports, port); i >= 0 {
			u.ports = slices.Delete(u.ports, i, i+1)
		}
	}
}

// clone copies what add and remove change.
func (u *usage) clone() usage {
	return usage{pods: u.pods, requested: maps.Clone(u.requested), ports: slices.Clone(u.ports)}
}

// podRequests returns what the scheduler counts as the requests of a Pod. Like the API server, it
// takes a limit without a request as the request.
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	isLimited := func(c corev1.Container) bool { return len(c.Resources.Limits) > 0 }
	if slices.ContainsFunc(pod.Spec.Containers, isLimited) || slices.ContainsFunc(pod.Spec.InitContainers, isLimited) {
		pod = pod.DeepCopy()
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				containers[i].Resources.Requests = requestsOf(&containers[i])
			}
		}
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

// hostPortsOf returns the ports of its node that a Pod has as long as it runs.
func hostPortsOf(pod *corev1.Pod) []hostPort {
	lasting := slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool { return !isSidecar(&c) })
	var ports []hostPort
	for _, container := range append(lasting, pod.Spec.Containers...) {
		for _, port := range container.Ports {
			if pod.Spec.HostNetwork {
				port.HostPort = port.ContainerPort
			}
			if port.HostPort != 0 {
				ports = append(ports, hostPort{cmp.Or(port.Protocol, corev1.ProtocolTCP), cmp.Or(port.HostIP, allAddresses), port.HostPort})
			}
		}
	}
	return ports
}

// shortage is a resource of which a node has too little left for a Pod.
type shortage struct {
	resource  corev1.ResourceName
	requested resource.Quantity
	// left is what the node has left, and allocatable what it would have without Pods.
	left, allocatable resource.Quantity
	node              string
}

// whyOccupied says which ports of the node other Pods have, which resources the node has too little
// of, or which Pods may not be together. The first two are as in the scheduler's filters NodePorts and
// NodeResourcesFit.
func (n *node) whyOccupied(d *demand, isLive bool) (reason string, shortages []shortage) {
	for _, port := range d.ports {
		if slices.ContainsFunc(n.ports, port.overlaps) {
			return fmt.Sprintf("another Pod has the host port %d/%s", port.port, port.protocol), nil
		}
	}
	allocatable := n.object.Status.Allocatable
	if len(allocatable) == 0 && isLive {
		return "the node has no status.allocatable, so it takes no Pods", nil
	}
	check := func(name corev1.ResourceName, requested, taken resource.Quantity) {
		left, known := allocatable[name]
		if !known && !isLive {
			return // a Node in a file need not say all
		}
		left = left.DeepCopy()
		left.Sub(taken)
		if requested.Cmp(left) > 0 {
			shortages = append(shortages, shortage{name, requested, left, allocatable[name], n.object.Name})
		}
	}
	check(corev1.ResourcePods, *resource.NewQuantity(1, resource.DecimalSI), *resource.NewQuantity(int64(n.pods), resource.DecimalSI))
	for _, name := range slices.Sorted(maps.Keys(d.requests)) {
		if requested := d.requests[name]; !requested.IsZero() {
			check(name, requested, n.requested[name])
		}
	}
	if len(shortages) == 0 {
		return d.neighbours.whyApart(n.object), nil
	}
	names := make([]string, len(shortages))
	for i := range shortages {
		names[i] = string(shortages[i].resource)
	}
	return "insufficient " + strings.Join(names, " and "), shortages
}

// isUnprovided reports whether the nodes do not have an extended resource at all.
func (s *shortage) isUnprovided() bool {
	return s.allocatable.IsZero() && strings.Contains(string(s.resource), "/")
}

// describeShortages says what is requested of each resource, and what the node with the most has.
func describeShortages(shortages []shortage) string {
	var parts []string
	for i := range shortages {
		s := &shortages[i]
		switch {
		case s.resource == corev1.ResourcePods:
			parts = append(parts, fmt.Sprintf("%s of %s Pods that node %s takes are there", amountTaken(s), &s.allocatable, s.node))
		case s.isUnprovided():
			parts = append(parts, fmt.Sprintf("no node provides %s, and no DeviceClass has it as its extendedResourceName", s.resource))
		case s.allocatable.IsZero():
			parts = append(parts, fmt.Sprintf("%s %s requested, and the nodes have none", &s.requested, s.resource))
		case s.requested.Cmp(s.allocatable) > 0:
			parts = append(parts, fmt.Sprintf("%s %s requested, more than node %s has (%s)", &s.requested, s.resource, s.node, &s.allocatable))
		default:
			parts = append(parts, fmt.Sprintf("%s %s requested, %s of %s left on node %s", &s.requested, s.resource, &s.left, &s.allocatable, s.node))
		}
	}
	return strings.Join(parts, ", ")
}

func amountTaken(s *shortage) string {
	taken := s.allocatable.DeepCopy()
	taken.Sub(s.left)
	return taken.String()
}

// keepLargest keeps, of two lists of shortages of the same resources, the node that has the most
// of each.
func keepLargest(known, others []shortage) {
	for i := range known {
		if others[i].left.Cmp(known[i].left) > 0 {
			known[i] = others[i]
		}
	}
}
