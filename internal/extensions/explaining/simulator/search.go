package simulator

import (
	"context"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// The steps of a search that others tell apart: what leaves too few devices beside their
// number ends with leave.
const inCompletePools, leave = "in complete pools", " leave"

// searchAlternatives returns, for each alternative of a request, what each step leaves of the
// devices of a node. The claims in before get their devices first.
func (a *allocator) searchAlternatives(ctx context.Context, n *node, before []*resourcev1.ResourceClaim, claim *resourcev1.ResourceClaim, index int) ([]Search, error) {
	devices, err := n.reachableDevices()
	if err != nil {
		return nil, err
	}
	all := alternativesOf(&claim.Spec.Devices.Requests[index])
	searches := make([]Search, len(all))
	for i := range all {
		searcher := searcher{allocator: a, node: n, request: &all[i], left: devices}
		searcher.filterDevices(ctx)
		if err := searcher.tryAllocator(ctx, before, cutAfterRequest(claim, index), i); err != nil {
			return searches[:i], err
		}
		searches[i] = Search{
			Request: all[i].name, Wanted: all[i].wantedText(), Steps: searcher.steps, matching: len(searcher.matching), limit: searcher.limit,
		}
	}
	return searches, nil
}

// allDevices is what a request wants that wants all devices of a node.
const allDevices = "all"

// wantedText returns how many devices are wanted, or "all".
func (a *alternative) wantedText() string {
	if a.AllocationMode == resourcev1.DeviceAllocationModeAll {
		return allDevices
	}
	return strconv.FormatInt(a.Count, 10)
}

// searcher looks for devices for one alternative of a request.
type searcher struct {
	*allocator

	node    *node
	request *alternative
	left    []device
	// enough is how many are wanted.
	enough int
	steps  []Step
	filtered
	// limit is the constraint that leaves too few, if one does.
	limit *limit
}

// filtered is the result of filterDevices.
type filtered struct {
	// incomplete are dropped for their pools, ofClass are those of the class in others, and matching
	// those that the selectors of the request leave. Tainted and held are dropped for that.
	incomplete, ofClass, matching, tainted, held []device
	// failure is the first selector that fails for a device, if any does.
	failure *selectorError
}

func (s *searcher) addStep(by string, devices int) {
	s.steps = append(s.steps, Step{by, devices})
}

// filterDevices drops, step by step, the devices that the request cannot have. A device for which a
// selector fails does not match. Whether the scheduler fails then, the allocator decides.
func (s *searcher) filterDevices(ctx context.Context) {
	s.addStep("devices", len(s.left))
	s.incomplete = s.keepDevices(inCompletePools, func(d device) bool { return d.pieces.are == d.pieces.wanted && d.pieces.twice == "" })
	selectors := s.matcher.selectorsOf(s.request)
	if len(selectors) == 0 || selectors[0].from == fromRequest {
		s.ofClass = s.left
	}
	for i, by := range selectors {
		s.left = slices.DeleteFunc(slices.Clone(s.left), func(d device) bool {
			matches, err := s.matcher.matchesSelector(ctx, d.driver, d.Device, by)
			if err != nil && s.failure == nil {
				s.failure = &selectorError{by, d, err}
			}
			return !matches
		})
		name := by.from
		if by.from == fromRequest {
			name = by.expression
		} else if i+1 == len(selectors) || selectors[i+1].from == fromRequest {
			s.ofClass = s.left
		}
		s.addStep(name, len(s.left))
	}
	s.matching = s.left
	s.enough = int(s.request.Count)
	if s.request.AllocationMode == resourcev1.DeviceAllocationModeAll {
		s.enough = max(len(s.left), 1)
	}
	s.tainted = s.keepDevices("without taints", func(d device) bool {
		return !slices.ContainsFunc(d.Taints, func(taint resourcev1.DeviceTaint) bool { return !s.request.toleratesTaint(taint) })
	})
	if !isTrue(s.request.AdminAccess) {
		s.held = s.keepDevices("free", func(d device) bool {
			return !s.allocated.AllocatedDevices.Has(structured.MakeDeviceID(d.driver, d.pool, d.Name))
		})
	}
}

// keepDevices keeps the devices for which a predicate is true, and returns the others. It counts as
// a step only if it drops any.
func (s *searcher) keepDevices(by string, good func(device) bool) (dropped []device) {
	first := slices.IndexFunc(s.left, func(d device) bool { return !good(d) })
	if first < 0 {
		return nil
	}
	kept := slices.Clone(s.left[:first])
	for i, d := range s.left[first:] {
		if i > 0 && good(d) {
			kept = append(kept, d)
		} else {
			dropped = append(dropped, d)
		}
	}
	s.left = kept
	s.addStep(by, len(kept))
	return dropped
}

// tryAllocator finds out how many devices the allocator gives to the request: alone, with the
// constraints of the claim, and beside the requests before it.
func (s *searcher) tryAllocator(ctx context.Context, before []*resourcev1.ResourceClaim, claim *resourcev1.ResourceClaim, index int) error {
	requests := claim.Spec.Devices.Requests
	last := requests[len(requests)-1:]
	alone := *claim
	alone.Spec.Devices.Requests, alone.Spec.Devices.Constraints = last, nil
	constrained := *claim
	constrained.Spec.Devices.Requests = last
	if s.hasTooFew() {
		return nil // the steps before say it all
	}
	for _, attempt := range []struct {
		by     string
		claims []*resourcev1.ResourceClaim
	}{
		{countersAndCapacity, []*resourcev1.ResourceClaim{&alone}},
		{"constraints leave", []*resourcev1.ResourceClaim{&constrained}},
		{"the requests before it leave", append(slices.Clone(before), claim)},
	} {
		found, err := s.mostAllocatable(ctx, attempt.claims, index, s.enough)
		if err != nil {
			return err
		}
		if found < s.enough {
			s.addStep(attempt.by, found)
			if attempt.by != countersAndCapacity {
				s.limit, err = s.limitOf(ctx, attempt.claims, index)
			}
			return err
		}
	}
	return nil
}

// hasTooFew reports whether there are too few devices, however they are combined.
func (s *searcher) hasTooFew() bool {
	return len(s.left) == 0 || len(s.left) < s.enough && !slices.ContainsFunc(s.left, device.isShareable)
}

// mostAllocatable returns how many devices the last request of the claims can have, up to the
// number wanted.
func (s *searcher) mostAllocatable(ctx context.Context, claims []*resourcev1.ResourceClaim, index, wanted int) (int, error) {
	for count := min(wanted, resourcev1.AllocationResultsMaxSize); count > 0; count-- {
		last := *claims[len(claims)-1]
		requests := slices.Clone(last.Spec.Devices.Requests)
		request := requests[len(requests)-1].DeepCopy()
		if request.Exactly != nil {
			request.Exactly.AllocationMode, request.Exactly.Count = resourcev1.DeviceAllocationModeExactCount, int64(count)
		} else {
			request.FirstAvailable = request.FirstAvailable[index : index+1]
			request.FirstAvailable[0].AllocationMode, request.FirstAvailable[0].Count = resourcev1.DeviceAllocationModeExactCount, int64(count)
		}
		requests[len(requests)-1] = *request
		last.Spec.Devices.Requests = requests
		tried := append(slices.Clone(claims[:len(claims)-1]), &last)
		found, err := s.canAllocate(ctx, s.node, tried)
		if found || err != nil {
			return count, err
		}
	}
	return 0, nil
}

// lacksDevices reports whether a node has too few devices for any of the requests. The allocator
// would find that out by trying all combinations, which can take long.
func (a *allocator) lacksDevices(ctx context.Context, n *node, claims []*resourcev1.ResourceClaim) bool {
	var devices []device
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			exactly := claim.Spec.Devices.Requests[i].Exactly
			if exactly == nil || exactly.Count < 2 {
				continue
			}
			if devices == nil {
				devices, _ = n.reachableDevices() // what is wrong is for the allocator to say
			}
			searcher := searcher{allocator: a, node: n, request: &alternativesOf(&claim.Spec.Devices.Requests[i])[0], left: devices}
			if searcher.filterDevices(ctx); searcher.failure == nil && searcher.hasTooFew() {
				return true
			}
		}
	}
	return false
}
