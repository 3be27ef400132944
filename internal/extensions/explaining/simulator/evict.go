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
// nil if there is no such node, and tries as many nodes as the scheduler always does.
func (s *Scheduler) FindEviction(ctx context.Context, pod *corev1.Pod, bound []*corev1.Pod) *Eviction {
	d, err := s.demandOf(pod)
	if err != nil {
		return nil
	}
	lower := map[string][]*corev1.Pod{}
	for _, other := range bound {
		if priorityOf(other) < priorityOf(pod) {
			lower[other.Spec.NodeName] = append(lower[other.Spec.NodeName], other)
		}
	}
	var best *Eviction
	tried := 0
	for _, n := range s.nodes {
		if len(lower[n.object.Name]) == 0 || !d.fitsOn(n.object) {
			continue
		}
		if victims := s.findVictims(ctx, n, d, lower[n.object.Name]); victims != nil && isBetter(victims, best) {
			best = &Eviction{n.object.Name, victims}
		}
		if tried++; tried == alwaysTried {
			break
		}
	}
	return best
}

// isBetter reports whether Pods are less important than those of another node, or fewer.
func isBetter(victims []*corev1.Pod, best *Eviction) bool {
	if best == nil {
		return true
	}
	return cmp.Or(cmp.Compare(priorityOf(victims[0]), priorityOf(best.Pods[0])), cmp.Compare(len(victims), len(best.Pods))) < 0
}

// findVictims returns the Pods without which the demand fits on a node, the most important first: it
// removes all candidates, and then takes back each without which it still fits. It returns nil if the
// demand does not fit without all of them.
func (s *Scheduler) findVictims(ctx context.Context, n *node, d *demand, candidates []*corev1.Pod) []*corev1.Pod {
	slices.SortStableFunc(candidates, func(a, b *corev1.Pod) int { return cmp.Compare(priorityOf(b), priorityOf(a)) })
	gone := map[types.UID]bool{}
	for _, pod := range candidates {
		gone[pod.UID] = true
	}
	if !s.fitsWithout(ctx, n, d, candidates, gone) {
		return nil
	}
	var victims []*corev1.Pod
	for _, pod := range candidates {
		gone[pod.UID] = false
		if !s.fitsWithout(ctx, n, d, candidates, gone) {
			gone[pod.UID] = true
			victims = append(victims, pod)
		}
	}
	return victims
}

// fitsWithout reports whether a demand fits on a node without those of the candidates that are gone.
func (s *Scheduler) fitsWithout(ctx context.Context, n *node, d *demand, candidates []*corev1.Pod, gone map[types.UID]bool) bool {
	trial := *n
	trial.usage = n.clone()
	var freed []*resourcev1.AllocationResult
	for _, pod := range candidates {
		if gone[pod.UID] {
			trial.remove(podRequests(pod), hostPortsOf(pod))
			freed = append(freed, s.allocationsOnlyFor(pod, gone)...)
		}
	}
	for _, allocation := range freed {
		removeAllocated(s.allocated, allocation)
	}
	defer func() {
		for _, allocation := range freed {
			addAllocated(s.allocated, allocation)
		}
	}()
	if reason, _ := trial.whyOccupied(d, s.isLive); reason != "" {
		return false
	}
	found, err := s.hasDevices(ctx, &trial, d.pending)
	return found && err == nil
}

// allocationsOnlyFor returns the allocations of the claims of a Pod that no Pod has that stays. A claim
// of several Pods that go is among those of the first.
func (s *Scheduler) allocationsOnlyFor(pod *corev1.Pod, gone map[types.UID]bool) []*resourcev1.AllocationResult {
	var all []*resourcev1.AllocationResult
	for _, claim := range s.reservations()[pod.UID] {
		stays := func(consumer resourcev1.ResourceClaimConsumerReference) bool { return !gone[consumer.UID] }
		if !slices.ContainsFunc(claim.Status.ReservedFor, stays) && claim.Status.ReservedFor[0].UID == pod.UID {
			all = append(all, claim.Status.Allocation)
		}
	}
	return all
}

// reservations maps Pods to the allocated claims that are reserved for them.
func (s *Scheduler) reservations() map[types.UID][]*resourcev1.ResourceClaim {
	if s.reserved == nil {
		s.reserved = map[types.UID][]*resourcev1.ResourceClaim{}
		for _, claim := range s.claims {
			if claim.Status.Allocation == nil {
				continue
			}
			for _, consumer := range claim.Status.ReservedFor {
				s.reserved[consumer.UID] = append(s.reserved[consumer.UID], claim)
			}
		}
	}
	return s.reserved
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
