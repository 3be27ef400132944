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

// checkRequests checks that each request has the devices that it asks for, and nothing else has any.
func (a *allocation) checkRequests() {
	type answer struct {
		request string
		device  deviceID
	}
	seen := map[answer]bool{}
	for i := range a.results {
		r := &a.results[i]
		if r.request == nil {
			a.report(requestAnswered, "device %s is for request %q, which the claim does not have", r.id, r.Request)
		} else if seen[answer{r.Request, r.id}] {
			a.report(requestAnswered, "request %s has device %s twice", r.Request, r.id)
		}
		seen[answer{r.Request, r.id}] = true
	}
	for i := range a.claim.Spec.Devices.Requests {
		a.checkAnswer(a.claim.Spec.Devices.Requests[i].Name)
	}
}

// checkAnswer checks that a request, or one of its subrequests, has as many devices as it asks for.
func (a *allocation) checkAnswer(base string) {
	var answered []string
	for i := range a.requests {
		r := &a.requests[i]
		count := int64(len(a.devicesFor(r)))
		if r.base != base || count == 0 {
			continue
		}
		answered = append(answered, r.name)
		if r.AllocationMode != resourcev1.DeviceAllocationModeAll && count != r.Count {
			a.report(requestAnswered, "request %s asks for %d devices and has %d", r.name, r.Count, count)
		}
	}
	switch {
	case len(answered) == 0:
		a.report(requestAnswered, "request %s has no device", base)
	case len(answered) > 1:
		a.report(firstAvailableOne, "request %s has devices for several subrequests: %s", base, strings.Join(answered, ", "))
	}
}
