package resourceslice

import (
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// lateSlices is how long slices of a node that has left the selection may still come:
// from a write that was on its way, or from a replica that sees the node leave later.
const lateSlices = 5 * time.Minute

// nodeRecords have, by its name, the nodeRecord of each node that is, or was, fake. One
// that no longer is stays until its slices are gone for good: they are not someone else's.
type nodeRecords struct {
	sync.Map
	// changed has the time of the first event of a node that has not been dealt with.
	changed sync.Map
}

type nodeRecord struct {
	pools plan.Known
	// empty is since when a node that is no longer fake has no slices, or zero.
	empty time.Time
}

// note notes that a node has changed, and whether it is fake: it may leave the selection
// before it is looked at.
func (r *nodeRecords) note(node string, fake bool) {
	if fake {
		r.LoadOrStore(node, nodeRecord{})
	}
	if _, known := r.get(node); known {
		r.changed.LoadOrStore(node, time.Now())
	}
}

// keepChanged keeps the time of an event that has not been dealt with after all.
func (r *nodeRecords) keepChanged(node string, changed any) {
	if changed != nil {
		r.changed.Store(node, changed)
	}
}

// get returns the record of a node, if there is one.
func (r *nodeRecords) get(node string) (record nodeRecord, known bool) {
	kept, known := r.Load(node)
	if known {
		record = kept.(nodeRecord)
	}
	return record, known
}

// leave notes that a node is not fake, and whether it has no slices. It returns for
// how long slices may still come that are not told from someone else's but by the
// record. Once that is over the record goes, or at once where others have no slices.
func (r *nodeRecords) leave(node string, empty, others bool) (wait time.Duration) {
	if !empty {
		r.Store(node, nodeRecord{})
		return 0
	}
	record, _ := r.get(node)
	if record.empty.IsZero() {
		record.empty = time.Now()
	}
	wait = lateSlices - time.Since(record.empty)
	if wait <= 0 || !others {
		r.Delete(node)
		return 0
	}
	r.Store(node, nodeRecord{empty: record.empty})
	return wait
}
