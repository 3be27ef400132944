package page

import (
	"context"
	"net/http"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

const (
	// idleInterval is the shortest time between two inventories while nobody looks.
	idleInterval = 5 * time.Second
	// idleFactor is how many times as long as an inventory took the next one waits. So
	// inventories take at most one hundredth of a core, however large the fleet is.
	idleFactor = 100
)

// runTimeline remembers what changes, until ctx ends.
func (f *feed) runTimeline(ctx context.Context) {
	f.mu.Lock()
	f.running = true
	f.mu.Unlock()
	for ctx.Err() == nil {
		began := time.Now()
		f.mu.Lock()
		if !f.timeline.Begun() || f.source.Changes() != f.changes {
			now := f.takeInventory()
			if f.items != nil { // somebody looks
				f.updateItems(now)
			}
		}
		f.mu.Unlock()
		next := time.NewTimer(max(idleInterval, idleFactor*time.Since(began)))
		select {
		case <-ctx.Done():
		case <-next.C:
		}
		next.Stop()
	}
}

// serveTimeline serves GET /api/timeline: what has happened in the last hour.
//
//	{
//	  "begins": "2026-01-01T00:00:00Z",  // since when all is remembered
//	  "ends": "2026-01-01T00:20:00Z",    // now
//	  "seconds": 20,                     // of a bucket: 5, 10, 20, 30 or 60
//	  "buckets": [{                      // without gaps, at most 61, the oldest first
//	    "from": "2026-01-01T00:00:00Z",  // a multiple of its length
//	    "changes": {"published": 8, "prepared": 1},  // devices by kind, without those that are 0
//	    "drivers": [...]                 // totals at its end, as in /api/devices
//	  }],
//	  "changes": [{                      // the last 200, the newest first
//	    "at": "2026-01-01T00:00:05.25Z", // when it was noticed
//	    "kind": "prepared",              // published, retired, allocated, prepared, released, tainted or failed
//	    "node": "h100-0",                // absent for a pool that nodes share
//	    "driver": "gpu.nvidia.com", "pool": "h100-0", "device": "gpu-0",
//	    "claims": ["default/training"]   // that have the device now, or else had it; absent where there are none
//	  }]
//	}
//
// What differs between two inventories is a change. They are taken every second while
// somebody looks. Otherwise they are 5 seconds apart, or a hundred times as long as one
// takes if that is longer, and none is taken while nothing changes. A device that was
// given to a claim and prepared in between was "prepared". One that has no claim any
// more, or no taint, was "released". That others block a device is no change, but part of
// the totals.
//
// The timeline begins with kwok-dra, an hour ago, or after more than fits into 4 MiB,
// which is some 25,000 changes of a pool. While it has not begun, there are no buckets.
func (f *feed) serveTimeline(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	f.mu.Lock()
	f.refreshInventory()
	report := f.timeline.Report(time.Now())
	f.mu.Unlock()
	writeJSON(w, r, report)
}

// pastFleet is the fleet as it was at a time.
type pastFleet struct {
	At      time.Time          `json:"at"`
	Drivers []inventory.Driver `json:"drivers"`
	Items   []*inventory.Item  `json:"items"`
}

// servePast answers with the fleet as it was at a time.
func (f *feed) servePast(w http.ResponseWriter, r *http.Request, asked string) {
	at, err := time.Parse(time.RFC3339, asked)
	if err != nil {
		http.Error(w, "at="+asked+" is no time such as 2026-01-01T00:00:00Z", http.StatusBadRequest)
		return
	}
	answer := f.fleetAt(at)
	if answer == nil {
		http.Error(w, "the timeline has not begun", http.StatusNotFound)
		return
	}
	writeJSON(w, r, answer)
}

// fleetAt returns the fleet as it was, or nil before the timeline has begun.
func (f *feed) fleetAt(at time.Time) *pastFleet {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refreshInventory()
	if !f.timeline.Begun() {
		return nil
	}
	was, which := f.timeline.At(at)
	return &pastFleet{which.UTC(), was.Drivers, was.Items}
}
