package drajudge

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// request is a request of a claim, or one of the subrequests of which the first available one is chosen.
type request struct {
	resourcev1.ExactDeviceRequest

	// base is the name in the claim, and name the one in results: base, or base/subrequest.
	base, name string
}

// requestsOf returns the requests of a claim and their subrequests, with defaults filled in.
func requestsOf(claim *resourcev1.ResourceClaim) []request {
	var requests []request
	for i := range claim.Spec.Devices.Requests {
		spec := &claim.Spec.Devices.Requests[i]
		if spec.Exactly != nil {
			requests = append(requests, request{*spec.Exactly, spec.Name, spec.Name})
		}
		for j := range spec.FirstAvailable {
			sub := &spec.FirstAvailable[j]
			requests = append(requests, request{resourcev1.ExactDeviceRequest{
				DeviceClassName: sub.DeviceClassName, Selectors: sub.Selectors, AllocationMode: sub.AllocationMode, Count: sub.Count,
				Tolerations: sub.Tolerations, Capacity: sub.Capacity, DerivedAttributes: sub.DerivedAttributes,
			}, spec.Name, spec.Name + "/" + sub.Name})
		}
	}
	for i := range requests {
		if r := &requests[i]; r.AllocationMode != resourcev1.DeviceAllocationModeAll && r.Count == 0 {
			r.Count = 1
		}
	}
	return requests
}

// isNamedIn reports whether names cover the request. No names cover all requests.
func (r *request) isNamedIn(names []string) bool {
	return len(names) == 0 || slices.Contains(names, r.base) || slices.Contains(names, r.name)
}

// checkRequests checks that each request has the devices that it asks for.
func (a *allocation) checkRequests() {
	counts := map[string]map[deviceID]int{}
	for i := range a.results {
		result := &a.results[i]
		if result.request == nil {
			a.report(requestAnswered, "device %s is for request %q, which the claim does not have", result.id, result.Request)
			continue
		}
		if counts[result.Request] == nil {
			counts[result.Request] = map[deviceID]int{}
		}
		counts[result.Request][result.id]++
		if counts[result.Request][result.id] == 2 {
			a.report(requestAnswered, "request %s has device %s twice", result.Request, result.id)
		}
	}
	chosen := map[string][]string{}
	for i := range a.requests {
		r := &a.requests[i]
		if chosen[r.base] == nil {
			chosen[r.base] = []string{}
		}
		if len(counts[r.name]) > 0 {
			chosen[r.base] = append(chosen[r.base], r.name)
			if r.AllocationMode != resourcev1.DeviceAllocationModeAll && int64(len(counts[r.name])) != r.Count {
				a.report(requestAnswered, "request %s asks for %d devices and has %d", r.name, r.Count, len(counts[r.name]))
			}
		}
	}
	for i := range a.claim.Spec.Devices.Requests {
		spec := &a.claim.Spec.Devices.Requests[i]
		switch names := chosen[spec.Name]; {
		case len(names) == 0:
			a.report(requestAnswered, "request %s has no device", spec.Name)
		case len(names) > 1:
			a.report(firstAvailableOne, "request %s has devices for several subrequests: %s", spec.Name, strings.Join(names, ", "))
		}
	}
}
