package page

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/timeline"
)

const (
	// inventoryInterval is the shortest time between two inventories, however many viewers there are.
	inventoryInterval = time.Second
	// keepWithoutViewers is how long the last inventory is kept without viewers.
	keepWithoutViewers = time.Minute
	// maxRemoved bounds the removed items whose revisions are remembered.
	maxRemoved = 10_000
	// maxGone bounds the gone devices in an answer. The totals of drivers count all.
	maxGone = 1000
)

// Answer is what there is, or what has changed.
type Answer struct {
	// Revision changes whenever anything changes.
	Revision string `json:"revision"`
	// Since is the revision that the caller has. Items and Removed are then only what
	// is different now. Without it, Items are all.
	Since   string             `json:"since,omitempty"`
	Drivers []inventory.Driver `json:"drivers"`
	Items   []*inventory.Item  `json:"items"`
	// Kinds are what the devices of items are, as far as the caller does not know it.
	Kinds []*inventory.Kind `json:"kinds,omitempty"`
	// Removed are the ids of items that are gone.
	Removed []string `json:"removed,omitempty"`
	// Gone are the first devices that claims have and no slice publishes any more, and
	// Unseen says what could not be read.
	Gone   []inventory.GoneDevice `json:"gone,omitempty"`
	Unseen string                 `json:"unseen,omitempty"`
}

// feed takes inventories on request, and answers each viewer with what has changed.
type feed struct {
	source *inventory.Source
	// epoch distinguishes the revisions of this process from those of others.
	epoch string

	mu sync.Mutex
	history
	// changes is the source's count when the last inventory was taken.
	changes uint64
	taken   time.Time
	forget  *time.Timer
	// timeline remembers inventories while it is running.
	timeline timeline.Timeline
	running  bool
}

// history is the last inventory, and the revision at which each of its items last changed.
// It answers what is new to a viewer without a list of viewers.
type history struct {
	revision uint64
	// oldest is the first revision since when all changes are known.
	oldest  uint64
	drivers []inventory.Driver
	// items is nil where there is no inventory.
	items   map[string]dated
	removed map[string]uint64
	kinds   map[string]datedKind
	// gone and unseen are of the last inventory.
	gone   []inventory.GoneDevice
	unseen string
}

// dated is an item with the revision at which it last changed.
type dated struct {
	*inventory.Item
	revision uint64
}

// datedKind is a kind with the revision at which there was a pool of it again.
type datedKind struct {
	*inventory.Kind
	revision uint64
}

func newFeed(source *inventory.Source) *feed {
	f := &feed{source: source, epoch: rand.Text()[:8]}
	f.forget = time.AfterFunc(keepWithoutViewers, f.dropInventory)
	return f
}

// currentRevision returns the newest revision.
func (f *feed) currentRevision() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refreshInventory()
	return f.revisionName(f.revision)
}

// answerSince returns what has changed since a revision, or nil if nothing has. Without a
// revision, or with one that is no longer known, it returns everything.
func (f *feed) answerSince(name string) *Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refreshInventory()
	answer := &Answer{Revision: f.revisionName(f.revision), Drivers: f.drivers, Items: []*inventory.Item{}, Gone: f.gone, Unseen: f.unseen}
	if name == answer.Revision {
		return nil
	}
	since, known := f.parseRevision(name)
	if known {
		answer.Since = name
		for id, revision := range f.removed {
			if revision > since {
				answer.Removed = append(answer.Removed, id)
			}
		}
		slices.Sort(answer.Removed)
	}
	for _, item := range f.items {
		if !known || item.revision > since {
			answer.Items = append(answer.Items, item.Item)
		}
	}
	slices.SortFunc(answer.Items, func(a, b *inventory.Item) int { return cmp.Compare(a.ID, b.ID) })
	for _, kind := range f.kinds {
		if !known || kind.revision > since {
			answer.Kinds = append(answer.Kinds, kind.Kind)
		}
	}
	return answer
}

func (f *feed) revisionName(revision uint64) string {
	return fmt.Sprintf("%s-%d", f.epoch, revision)
}

func (f *feed) parseRevision(name string) (revision uint64, known bool) {
	if _, err := fmt.Sscanf(name, f.epoch+"-%d", &revision); err != nil {
		return 0, false
	}
	return revision, revision >= f.oldest && revision < f.revision
}

// refreshInventory takes an inventory if something may have changed and the last one is old enough.
func (f *feed) refreshInventory() {
	f.forget.Reset(keepWithoutViewers)
	if f.items == nil || time.Since(f.taken) >= inventoryInterval && f.source.Changes() != f.changes {
		f.updateItems(f.takeInventory())
	}
}

// takeInventory takes an inventory, and adds it to the timeline.
func (f *feed) takeInventory() *inventory.Inventory {
	f.changes, f.taken = f.source.Changes(), time.Now()
	now := f.source.Take()
	if f.running {
		f.timeline.Note(now, f.taken)
	}
	return now
}

// updateItems compares an inventory with the last one. Items that have not changed keep their revision.
func (h *history) updateItems(now *inventory.Inventory) {
	next := h.revision + 1
	if h.items == nil {
		h.revision, h.oldest, h.removed = next, next, map[string]uint64{}
	}
	items := make(map[string]dated, len(now.Items))
	for _, item := range now.Items {
		former, known := h.items[item.ID]
		if known && former.Equal(item) {
			items[item.ID] = former
			continue
		}
		items[item.ID] = dated{item, next}
		delete(h.removed, item.ID)
		h.revision = next
	}
	for id := range h.items {
		if _, left := items[id]; !left {
			h.removed[id] = next
			h.revision = next
		}
	}
	kinds := make(map[string]datedKind, len(now.Kinds))
	for id, kind := range now.Kinds {
		kinds[id] = datedKind{kind, next}
		if former, known := h.kinds[id]; known {
			kinds[id] = former
		}
	}
	gone := now.Gone[:min(len(now.Gone), maxGone)]
	if now.Unseen != h.unseen || !slices.EqualFunc(gone, h.gone, inventory.GoneDevice.Equal) || !slices.Equal(now.Drivers, h.drivers) {
		h.revision = next
	}
	h.items, h.kinds, h.drivers, h.gone, h.unseen = items, kinds, now.Drivers, gone, now.Unseen
	if len(h.removed) > maxRemoved {
		h.oldest, h.removed = h.revision, map[string]uint64{}
	}
}

// dropInventory forgets the last inventory, since nobody looks.
func (f *feed) dropInventory() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items, f.kinds, f.removed, f.drivers, f.gone = nil, nil, nil, nil, nil
}
