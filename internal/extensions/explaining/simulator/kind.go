package simulator

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// kind is what is known of Pods that ask for the same. Devices are only ever taken, so a node on
// which such a Pod did not fit need not be tried again.
type kind struct {
	// open are the nodes on which such a Pod may fit, by how many alternatives of
	// its requests are considered, less one.
	open []queue
	// mayFail says that the scheduler may fail on the Pod, which is more than that the
	// Pod does not fit.
	mayFail bool
	// refusals are known once they have been asked for.
	refusals []Refusal
	// supplies are, too, and excluded are nodes that have it all and may not have the Pod.
	supplies []Supply
	excluded *Refusal
	// evictions are the answers of FindEviction, which may be nil.
	evictions map[evictionKey]*Eviction
}

// evictionKey is what an Eviction depends on beside the kind of a Pod: its priority, and how many Pods had come.
type evictionKey struct {
	priority int32
	placed   int
}

// kindOf returns the kind of a demand, and makes one that is new.
func (s *Scheduler) kindOf(ctx context.Context, d *demand) *kind {
	if known := s.kinds[d.kind]; known != nil {
		return known
	}
	ranks := 1 // as many as the request with the most alternatives has
	for _, claim := range d.pending {
		for i := range claim.Spec.Devices.Requests {
			ranks = max(ranks, len(claim.Spec.Devices.Requests[i].FirstAvailable))
		}
	}
	k := &kind{open: make([]queue, ranks), evictions: map[evictionKey]*Eviction{}}
	for i, n := range s.nodes {
		if !d.fitsOn(n.object) {
			continue
		}
		for rank := range k.open {
			k.open[rank] = append(k.open[rank], candidate{n, i, d.preferenceFor(n.object)})
		}
	}
	if len(s.nodes) <= alwaysTried {
		k.mayFail = s.matcher.mayFail(ctx, s.published, d.pending)
	}
	s.kinds[d.kind] = k
	return k
}

// findFirstFitting returns the first open node that has the devices, and drops the nodes before it. An error of the allocator
// counts only for whole claims: with fewer alternatives it looks at devices that it does not come to with all of them.
func (s *Scheduler) findFirstFitting(ctx context.Context, d *demand, open *queue, claims []*resourcev1.ResourceClaim, isWhole bool) (*node, []resourcev1.AllocationResult, error) {
	heap.Init(open) // Pods of other kinds were placed since, so the order has changed
	for open.Len() > 0 {
		n := (*open)[0].node
		if reason, _ := n.whyOccupied(d, s.isLive); reason != "" || s.lacksDevices(ctx, n, claims) {
			heap.Pop(open)
			continue
		}
		results, err := s.allocateOn(ctx, n, claims)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, nil, fmt.Errorf("node %s: no devices found in %s, after which the scheduler gives up", n.object.Name, filterTimeout)
		case err != nil && isWhole && !errors.Is(err, structured.ErrFailedAllocationOnNode):
			return nil, nil, fmt.Errorf("on node %s: %w", n.object.Name, err)
		case results != nil:
			return n, results, nil
		}
		heap.Pop(open)
	}
	return nil, nil, nil
}

// mayFail reports whether the allocator may return an error for the claims on any node, which is
// more than that they do not fit there.
func (m *matcher) mayFail(ctx context.Context, published *publications, claims []*resourcev1.ResourceClaim) bool {
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			for _, request := range alternativesOf(&claim.Spec.Devices.Requests[i]) {
				if request.AllocationMode == resourcev1.DeviceAllocationModeAll || len(request.DerivedAttributes) > 0 || m.failsForAny(ctx, published, &request) {
					return true
				}
			}
		}
	}
	return false
}

// candidate is a node that may have what a Pod asks for.
type candidate struct {
	*node

	index      int
	preference int64
}

// queue has the nodes that a Pod wants most first; of equal ones those with the
// fewest Pods, as the scheduler spreads Pods by default, and then by name.
type queue []candidate

// Len implements heap.Interface, and so do the others.
func (q queue) Len() int { return len(q) }

// Less is whether one node comes before another.
func (q queue) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	return cmp.Or(cmp.Compare(b.preference, a.preference), cmp.Compare(a.pods, b.pods), cmp.Compare(a.index, b.index)) < 0
}

// Swap swaps two candidates.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds a candidate.
func (q *queue) Push(x any) { *q = append(*q, x.(candidate)) }

// Pop removes the last candidate.
func (q *queue) Pop() any {
	last := len(*q) - 1
	popped := (*q)[last]
	*q = (*q)[:last]
	return popped
}
