package drajudge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// allocatorFeatures enables all features: the API server drops the fields of those that are off.
var allocatorFeatures = structured.Features{
	AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true, DerivedAttributes: true, DeviceBindingAndStatus: true,
	DeviceTaints: true, FractionalCapacityRange: true, ListTypeAttributes: true, OptionalNodeOperations: true,
	PartitionableDevices: true, PrioritizedList: true,
}

// classLister lists the device classes of a supply.
type classLister struct{ *supply }

// List lists all.
func (l classLister) List() ([]*resourcev1.DeviceClass, error) {
	var classes []*resourcev1.DeviceClass
	for _, object := range l.objects {
		if class, isClass := object.(*resourcev1.DeviceClass); isClass {
			classes = append(classes, class)
		}
	}
	return classes, nil
}

// Get gets one.
func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := l.class(name); class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("deviceclass %q not found", name)
}

// searchLimit is how many devices the exhaustive search looks at in one judgement of a state of rest.
const searchLimit = 50_000

// placeSearch looks for places in the world as it is.
type placeSearch struct {
	*Observer
	*room

	allocator structured.Allocator
	triesLeft int
}

// place is a node, what a Pod lacks there, and the devices for it, if there are any.
type place struct {
	node    *corev1.Node
	claims  []*resourcev1.ResourceClaim
	results []resourcev1.AllocationResult
}

// checkWaitingPods looks for a place for each Pod that waits for devices, in the world as it is.
func (r *restCheck) checkWaitingPods(ctx context.Context) []Violation {
	var violations []Violation
	search := &placeSearch{Observer: r.Observer, room: measureRoom(r.supply.nodes, r.pods), triesLeft: searchLimit}
	if search.isUnclear {
		return nil
	}
	for _, id := range sortedKeys(r.pods) {
		pod := r.pods[id]
		if !isWaiting(pod) || len(r.claimsOf(pod)) == 0 && len(r.supply.deviceResourcesOf(pod)) == 0 || hasOtherDemands(pod) {
			continue
		}
		if search.allocator == nil {
			var err error
			if search.allocator, err = structured.NewAllocator(ctx, allocatorFeatures, r.holders.allocatedState(), classLister{r.supply}, r.supply.taintedSlices(), r.cel); err != nil {
				return violations // the allocator finds no place for anybody
			}
		}
		objects := []Object{nameObject("Pod", pod)}
		found, isByAllocator := search.findPlace(ctx, pod)
		switch {
		case found != nil && isByAllocator:
			violations = append(violations, r.violation(podPlaced, objects, "it waits, and fits %s", found))
		case found != nil:
			violations = append(violations, r.violation(podPlaceable, objects, "it waits, upstream's allocator finds no devices, and it fits %s", found))
		}
	}
	return violations
}

func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !hasEnded(pod) && len(pod.Spec.SchedulingGates) == 0
}

// findPlace returns a node and devices for a Pod, or nil if there are none. An error of the allocator on any node keeps a Pod
// waiting, though another node may suit it. That holds for a node, too, that an allocated claim of the Pod does not admit. A
// place that the exhaustive search rules out is none.
func (s *placeSearch) findPlace(ctx context.Context, pod *corev1.Pod) (found *place, isByAllocator bool) {
	pending, allocated, isUsable := s.sortClaims(pod)
	if !isUsable {
		return nil, false
	}
	var suitable, others []*place
	for _, name := range slices.Sorted(maps.Keys(s.supply.nodes)) {
		node := s.supply.nodes[name]
		isElsewhere := slices.ContainsFunc(allocated, func(c *resourcev1.ResourceClaim) bool { return !admitsNode(c.Status.Allocation.NodeSelector, node) })
		extended, provided := s.supply.extendedClaim(pod, node)
		if !s.suitsPod(node, pod, provided) || extended != nil && !s.hasQuotaFor(extended) {
			continue
		}
		p := &place{node: node, claims: pending}
		if extended != nil {
			p.claims = append(slices.Clip(pending), extended)
		}
		results, err := s.allocator.Allocate(ctx, node, p.claims)
		switch {
		case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
			return nil, false
		case isElsewhere:
			continue
		case err == nil && len(results) == len(p.claims):
			p.results = results
			suitable = append(suitable, p)
		default:
			others = append(others, p)
		}
	}
	if len(suitable) == 0 {
		return s.searchPlaces(ctx, others), false
	}
	confirmed := slices.IndexFunc(suitable, func(p *place) bool {
		devices, isUnclear := searchDevices(ctx, s.Observer, p.node, p.claims, &s.triesLeft)
		return len(devices) == len(p.claims) || isUnclear
	})
	if confirmed < 0 {
		return nil, false
	}
	return suitable[confirmed], true
}

// searchPlaces returns the first place for which the exhaustive search finds devices, with these, or nil if there is none.
func (s *placeSearch) searchPlaces(ctx context.Context, places []*place) *place {
	for _, p := range places {
		if p.results, _ = searchDevices(ctx, s.Observer, p.node, p.claims, &s.triesLeft); p.results != nil {
			return p
		}
	}
	return nil
}

// sortClaims splits the claims of a Pod into those without and those with an allocation. The Pod cannot use them if one
// does not exist, is reserved for too many Pods, or has a device with any taint or one to whose binding the driver has not
// agreed.
func (s *placeSearch) sortClaims(pod *corev1.Pod) (pending, allocated []*resourcev1.ResourceClaim, isUsable bool) {
	if pod.Status.ExtendedResourceClaimStatus != nil {
		return nil, nil, false // a claim for extended resources is made anew, so this one has to go first
	}
	for _, c := range s.claimsOf(pod) {
		switch {
		case c.claim == nil || c.claim.DeletionTimestamp != nil:
			return nil, nil, false
		case c.claim.Status.Allocation == nil:
			pending = append(pending, c.claim)
			continue
		case len(c.claim.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize && !isReservedFor(c.claim, pod):
			return nil, nil, false
		}
		allocated = append(allocated, c.claim)
		results := c.claim.Status.Allocation.Devices.Results
		for i := range results {
			id := deviceOf(&results[i])
			if offer := s.supply.pool(id.poolID()).byName[id.name]; offer != nil && len(s.supply.taintsOf(id, offer.device)) > 0 || !isAgreedTo(c.claim, &results[i]) {
				return nil, nil, false
			}
		}
	}
	return pending, allocated, true
}

// String names the node and the devices.
func (p *place) String() string {
	parts := []string{"node " + p.node.Name}
	for i := range p.results {
		var devices []string
		for j := range p.results[i].Devices.Results {
			result := &p.results[i].Devices.Results[j]
			devices = append(devices, result.Request+" "+deviceOf(result).String())
		}
		parts = append(parts, fmt.Sprintf("claim %s with %s", p.claims[i].Name, strings.Join(devices, " and ")))
	}
	return strings.Join(parts, ", ")
}

// allocatedState returns what claims have, as the allocator wants it.
func (h holders) allocatedState() structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for device, ofDevice := range h {
		id := structured.MakeDeviceID(device.driver, device.pool, device.name)
		for _, holder := range ofDevice {
			switch {
			case isTrue(holder.result.AdminAccess):
			case holder.result.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, holder.result.ShareID))
				if holder.result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, holder.result.ConsumedCapacity))
				}
			}
		}
	}
	return state
}
