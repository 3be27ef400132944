package resourceslice

import (
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// lateSlices is how long slices of a node that has left the selection may still come:
// from a write that was on its way, or from a replica that sees the node leave later.
const lateSlices = 5 * time.Minute

// nodeRecords remember the nodes that are, or were, fake. One that no longer is stays
// until its slices are gone for good: they are not someone else's.
type nodeRecords struct {
	mu    sync.Mutex
	nodes map[string]*nodeRecord
}

type nodeRecord struct {
	pools plan.Known
	// changed is the time of the first event that has not been dealt with, or zero.
	changed time.Time
	// empty is since when a node that is no longer fake has no slices, or zero.
	empty time.Time
}

// note notes when a node has changed, if it has, and whether it is fake: it may leave
// the selection before it is looked at.
func (r *nodeRecords) note(node string, fake bool, changed time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.get(node)
	if !changed.IsZero() && (record.changed.IsZero() || changed.Before(record.changed)) {
		record.changed = changed
	}
	if fake {
		r.nodes[node] = record
	}
}

// take returns the record of a node, if there is one, to deal with its events.
func (r *nodeRecords) take(node string) (record nodeRecord, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, known := r.nodes[node]
	if known {
		record, kept.changed = *kept, time.Time{}
	}
	return record, known
}

// setPools notes the pools that a node, which is fake, should have.
func (r *nodeRecords) setPools(node string, pools plan.Known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.get(node)
	record.pools, record.empty = pools, time.Time{}
	r.nodes[node] = record
}

// leave notes that a node is not fake, and whether it has no slices. It returns for
// how long slices may still come that are not told from someone else's but by the
// record. Once that is over the record goes, or at once where others have no slices.
func (r *nodeRecords) leave(node string, empty, others bool) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.get(node)
	record.pools = plan.Known{}
	r.nodes[node] = record
	switch {
	case !empty:
		record.empty = time.Time{}
		return 0
	case record.empty.IsZero():
		record.empty = time.Now()
	}
	if left := lateSlices - time.Since(record.empty); left > 0 && others {
		return left
	}
	delete(r.nodes, node)
	return 0
}

// get returns the record of a node, or one that is not kept.
func (r *nodeRecords) get(node string) *nodeRecord {
	if known := r.nodes[node]; known != nil {
		return known
	}
	return &nodeRecord{}
}
