package simulator

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Eviction is a node on which a Pod would fit without some Pods of lower priority.
type Eviction struct {
	Node string        `json:"node"`
	Pods []*corev1.Pod `json:"-"`
}

// FindEviction finds the node on which a Pod that fits nowhere would fit without the least important
// Pods: those of the lowest priority, and the fewest of them. All Pods are of lower priority. It returns
// nil if there is no such node, and tries as many nodes as the scheduler always does. Pods of one kind and
// priority share an answer until another Pod comes.
func (s *Scheduler) FindEviction(ctx context.Context, pod *corev1.Pod) *Eviction {
	d, err := s.demandOf(pod)
	if err != nil {
		return nil
	}
	k, at := s.kindOf(ctx, d), evictionKey{priorityOf(pod), s.placed}
	best, isKnown := k.evictions[at]
	if isKnown {
		return best
	}
	tried := 0
	for _, n := range s.nodes {
		var lower []*corev1.Pod
		for _, other := range n.residents {
			if priorityOf(other) < at.priority {
				lower = append(lower, other)
			}
		}
		if len(lower) == 0 || !d.fitsOn(n.object) {
			continue
		}
		trial := &eviction{Scheduler: s, node: n, demand: d, candidates: lower, gone: map[types.UID]bool{}}
		victims := trial.findVictims(ctx)
		if victims != nil && (best == nil || cmp.Or(cmp.Compare(priorityOf(victims[0]), priorityOf(best.Pods[0])), cmp.Compare(len(victims), len(best.Pods))) < 0) {
			best = &Eviction{n.object.Name, victims}
		}
		if tried++; tried == alwaysTried {
			break
		}
	}
	k.evictions[at] = best
	return best
}

// eviction tries on one node without which of the candidates the demand fits.
type eviction struct {
	*Scheduler

	node       *node
	demand     *demand
	candidates []*corev1.Pod
	// gone are those of the candidates that are not there.
	gone map[types.UID]bool
}

// findVictims returns the Pods without which the demand fits, the most important first: it removes all
// candidates, and then takes back each without which it still fits. It returns nil if the demand does not
// fit without all of them.
func (e *eviction) findVictims(ctx context.Context) []*corev1.Pod {
	slices.SortStableFunc(e.candidates, func(a, b *corev1.Pod) int { return cmp.Compare(priorityOf(b), priorityOf(a)) })
	for _, pod := range e.candidates {
		e.gone[pod.UID] = true
	}
	if !e.fits(ctx) {
		return nil
	}
	var victims []*corev1.Pod
	for _, pod := range e.candidates {
		e.gone[pod.UID] = false
		if !e.fits(ctx) {
			e.gone[pod.UID] = true
			victims = append(victims, pod)
		}
	}
	return victims
}

// fits reports whether the demand fits without the Pods that are gone.
func (e *eviction) fits(ctx context.Context) bool {
	trial := *e.node
	trial.usage = e.node.clone()
	stays := func(consumer resourcev1.ResourceClaimConsumerReference) bool { return !e.gone[consumer.UID] }
	var freed []*resourcev1.AllocationResult
	for _, pod := range e.candidates {
		if e.gone[pod.UID] {
			trial.remove(podRequests(pod), hostPortsOf(pod))
			for _, claim := range e.reservations()[pod.UID] {
				// A claim of several Pods that go is freed with the first.
				if !slices.ContainsFunc(claim.Status.ReservedFor, stays) && claim.Status.ReservedFor[0].UID == pod.UID {
					freed = append(freed, claim.Status.Allocation)
				}
			}
		}
	}
	for _, allocation := range freed {
		removeAllocated(e.allocated, allocation)
	}
	defer func() {
		for _, allocation := range freed {
			addAllocated(e.allocated, allocation)
		}
	}()
	demand := *e.demand
	if demand.neighbours != nil {
		demand.neighbours, _ = e.neighboursOf(&demand, e.gone) // it failed for none of them
	}
	if reason, _ := trial.whyOccupied(&demand, e.isLive); reason != "" {
		return false
	}
	found, err := e.hasDevices(ctx, &trial, e.demand.pending)
	return found && err == nil
}

// reservations maps Pods to the allocated claims that are reserved for them.
func (a *allocator) reservations() map[types.UID][]*resourcev1.ResourceClaim {
	if a.reserved == nil {
		a.reserved = map[types.UID][]*resourcev1.ResourceClaim{}
		for _, claim := range a.claims {
			if claim.Status.Allocation == nil {
				continue
			}
			for _, consumer := range claim.Status.ReservedFor {
				a.reserved[consumer.UID] = append(a.reserved[consumer.UID], claim)
			}
		}
	}
	return a.reserved
}

// removeAllocated undoes addAllocated.
func removeAllocated(state structured.AllocatedState, allocation *resourcev1.AllocationResult) {
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		if isTrue(result.AdminAccess) {
			continue
		}
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil {
			state.AllocatedDevices.Delete(id)
			continue
		}
		state.AllocatedSharedDeviceIDs.Delete(structured.MakeSharedDeviceID(id, result.ShareID))
		if result.ConsumedCapacity != nil {
			state.AggregatedCapacity.Remove(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
		}
	}
}
