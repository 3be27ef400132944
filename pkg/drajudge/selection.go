package drajudge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// checkSelectors checks that the class and the request select the device.
func (a *allocation) checkSelectors(r *result) {
	class := a.supply.class(r.request.DeviceClassName)
	if class == nil {
		a.reportOn(r, classSelectors, "there is no DeviceClass %s", r.request.DeviceClassName)
	} else if why := a.whyUnselected(r.offer, class.Spec.Selectors); why != "" {
		a.reportOn(r, classSelectors, "class %s: %s", class.Name, why)
	}
	if why := a.whyUnselected(r.offer, r.request.Selectors); why != "" {
		a.reportOn(r, requestSelectors, "%s", why)
	}
}

// checkAllDevices checks that requests for all devices have those of at least one node that the allocation admits.
func (a *allocation) checkAllDevices() {
	if !slices.ContainsFunc(a.requests, func(r request) bool { return r.AllocationMode == resourcev1.DeviceAllocationModeAll }) {
		return
	}
	nodes := slices.DeleteFunc(a.supply.nodesAdmittedBy(a.claim.Status.Allocation.NodeSelector), func(node *corev1.Node) bool {
		return slices.ContainsFunc(a.results, func(r result) bool {
			return r.offer != nil && !reachesNode(r.offer.slice, r.offer.device, node)
		})
	})
	for i := range a.requests {
		r := &a.requests[i]
		given := a.devicesFor(r)
		if r.AllocationMode != resourcev1.DeviceAllocationModeAll || len(given) == 0 {
			continue // a subrequest that was not chosen; checkRequests reports a request without devices
		}
		first := ""
		hasAll := slices.ContainsFunc(nodes, func(node *corev1.Node) bool {
			why := a.whyNotAll(r, given, node)
			first = cmp.Or(first, why)
			return why == ""
		})
		if !hasAll && first != "" {
			a.report(allDevices, "request %s: %s", r.name, first)
		}
	}
}

// devicesFor returns the devices that a request was given.
func (a *allocation) devicesFor(r *request) map[deviceID]bool {
	given := map[deviceID]bool{}
	for i := range a.results {
		if a.results[i].request == r {
			given[a.results[i].id] = true
		}
	}
	return given
}

// whyNotAll says which matching devices of a node a request lacks, or returns "".
func (a *allocation) whyNotAll(r *request, given map[deviceID]bool, node *corev1.Node) string {
	missing := map[string]bool{}
	class := a.supply.class(r.DeviceClassName)
	for _, p := range a.supply.poolsFor(node.Name) {
		reached := slices.DeleteFunc(slices.Clone(p.devices), func(offer poolDevice) bool { return !reachesNode(offer.slice, offer.device, node) })
		if len(reached) == 0 {
			continue
		}
		if p.incomplete != "" {
			return fmt.Sprintf("pool %s of node %s is incomplete: %s", p.id, node.Name, p.incomplete)
		}
		for i := range reached {
			offer := &reached[i]
			if given[offer.id] || class == nil || a.whyUnselected(offer, class.Spec.Selectors) != "" || a.whyUnselected(offer, r.Selectors) != "" {
				continue
			}
			if _, why := consumptionOf(r, offer.device); why == "" {
				missing[offer.id.String()] = true
			}
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("it lacks matching devices of node %s: %s", node.Name, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
}
