package drajudge

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resultLimit is how many devices a claim can have.
const resultLimit = resourcev1.AllocationResultsMaxSize

// search looks for devices for claims on a node. It tries all combinations of devices, and accepts what the rules for
// allocations permit. So it has nothing in common with upstream's allocator.
//
// While it runs, the Observer knows the devices that it tries as if they were allocated.
type search struct {
	*Observer

	ctx  context.Context //nolint:containedctx // it lasts for one call
	node *corev1.Node
	// claims have the allocations that are being tried.
	claims []*resourcev1.ResourceClaim
	// triesLeft is how many more devices it may look at before it gives up.
	triesLeft *int
	// isUnclear says that the search does not know a rule that matters here, or that it gave up.
	isUnclear bool
}

// searchDevices returns allocations of claims for a node, or nil if there are none. If it is unclear, there may be some.
func searchDevices(ctx context.Context, o *Observer, node *corev1.Node, claims []*resourcev1.ResourceClaim, triesLeft *int) (found []resourcev1.AllocationResult, isUnclear bool) {
	s := &search{Observer: o, ctx: ctx, node: node, triesLeft: triesLeft}
	for _, claim := range claims {
		claim = claim.DeepCopy()
		claim.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}},
		}}}}
		// The results keep their places in memory, since holders point to them.
		claim.Status.Allocation.Devices.Results = make([]resourcev1.DeviceRequestAllocationResult, 0, resultLimit)
		s.claims = append(s.claims, claim)
	}
	if !s.tryClaim(0) {
		return nil, s.isUnclear
	}
	for _, claim := range s.claims {
		found = append(found, *claim.Status.Allocation.DeepCopy())
	}
	for _, claim := range slices.Backward(s.claims) {
		for len(claim.Status.Allocation.Devices.Results) > 0 {
			s.removeLast(claim)
		}
	}
	if s.isUnclear {
		return nil, true
	}
	return found, false
}

// tryClaim finds devices for a claim and all after it.
func (s *search) tryClaim(index int) bool {
	return index == len(s.claims) || s.tryRequest(index, 0)
}

// tryRequest finds devices for a request of a claim and all after it.
func (s *search) tryRequest(claimIndex, requestIndex int) bool {
	claim := s.claims[claimIndex]
	if requestIndex == len(claim.Spec.Devices.Requests) {
		a := s.newAllocation(s.ctx, claim)
		a.checkDevices()
		return len(a.violations) == 0 && s.tryClaim(claimIndex+1)
	}
	base := claim.Spec.Devices.Requests[requestIndex].Name
	requests := requestsOf(claim)
	for i := range requests {
		r := &requests[i]
		if r.base != base {
			continue
		}
		offers := s.offersFor(r)
		count := int(min(r.Count, resultLimit+1))
		if r.AllocationMode == resourcev1.DeviceAllocationModeAll {
			count = len(offers)
		}
		if count > 0 && s.tryOffers(claim, r, offers, count, func() bool { return s.tryRequest(claimIndex, requestIndex+1) }) {
			return true
		}
	}
	return false
}

// offersFor returns the devices that a request could have on the node if nothing was allocated. A request for all devices
// has the others that match it as well: it gets none of them without these.
func (s *search) offersFor(r *request) []*poolDevice {
	class := s.supply.class(r.DeviceClassName)
	if class == nil {
		return nil
	}
	e := evaluator{s.ctx, s.cel}
	wantsAll := r.AllocationMode == resourcev1.DeviceAllocationModeAll
	var offers []*poolDevice
	for _, p := range s.supply.poolsFor(s.node.Name) {
		for i := range p.devices {
			offer := &p.devices[i]
			if !s.hasTriesLeft() {
				return nil
			}
			if !reachesNode(offer.slice, offer.device, s.node) || !wantsAll && (p.incomplete != "" || p.invalid != "") ||
				e.whyUnselected(offer, class.Spec.Selectors) != "" || e.whyUnselected(offer, r.Selectors) != "" {
				continue
			}
			if _, why := consumptionOf(r, offer.device); why != "" {
				continue
			}
			s.isUnclear = s.isUnclear || slices.ContainsFunc(offer.device.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool {
				return len(c.CompatibilityGroups) > 0
			})
			offers = append(offers, offer)
		}
	}
	return offers
}

// tryOffers gives a request so many of the devices on offer, in every combination, until the rest can be found too.
func (s *search) tryOffers(claim *resourcev1.ResourceClaim, r *request, offers []*poolDevice, count int, findRest func() bool) bool {
	if count == 0 {
		return findRest()
	}
	for i := 0; i+count <= len(offers); i++ {
		if !s.hasTriesLeft() {
			return false
		}
		if len(claim.Status.Allocation.Devices.Results) == resultLimit {
			return false
		}
		s.addLast(claim, s.newResult(r, offers[i]))
		if s.isPossible(claim) && s.tryOffers(claim, r, offers[i+1:], count-1, findRest) {
			return true
		}
		s.removeLast(claim)
	}
	return false
}

func (s *search) hasTriesLeft() bool {
	*s.triesLeft--
	s.isUnclear = s.isUnclear || *s.triesLeft < 0
	return *s.triesLeft >= 0
}

// newResult returns what an allocation says of a device.
func (s *search) newResult(r *request, offer *poolDevice) resourcev1.DeviceRequestAllocationResult {
	result := resourcev1.DeviceRequestAllocationResult{
		Request: r.name, Driver: offer.id.driver, Pool: offer.id.pool, Device: offer.id.name, AdminAccess: r.AdminAccess, Tolerations: r.Tolerations,
		BindingConditions: offer.device.BindingConditions, BindingFailureConditions: offer.device.BindingFailureConditions,
	}
	if isTrue(offer.device.AllowMultipleAllocations) {
		result.ShareID = new(types.UID(fmt.Sprintf("try-%d", *s.triesLeft)))
		result.ConsumedCapacity, _ = consumptionOf(r, offer.device)
	}
	return result
}

// isPossible reports whether the devices of a claim so far keep the rules that further devices cannot make good.
func (s *search) isPossible(claim *resourcev1.ResourceClaim) bool {
	if len(s.checkHolders(claim)) > 0 {
		return false
	}
	a := s.newAllocation(s.ctx, claim)
	a.checkTaints(&a.results[len(a.results)-1])
	a.checkConstraints()
	a.checkCapacityTotals()
	a.checkCounterTotals()
	return len(a.violations) == 0
}

func (s *search) addLast(claim *resourcev1.ResourceClaim, result resourcev1.DeviceRequestAllocationResult) {
	devices := &claim.Status.Allocation.Devices
	devices.Results = append(devices.Results, result)
	id := deviceOf(&result)
	s.holders[id] = append(s.holders[id], holder{claim, &devices.Results[len(devices.Results)-1]})
}

func (s *search) removeLast(claim *resourcev1.ResourceClaim) {
	results := claim.Status.Allocation.Devices.Results
	last := len(results) - 1
	id := deviceOf(&results[last])
	if left := s.holders[id][:len(s.holders[id])-1]; len(left) > 0 {
		s.holders[id] = left
	} else {
		delete(s.holders, id)
	}
	claim.Status.Allocation.Devices.Results = results[:last]
}
