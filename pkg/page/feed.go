package page

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/timeline"
)

const (
	// interval is how often an inventory is taken at most, however many look.
	interval = time.Second
	// keep is how long the last one is kept without viewers.
	keep = time.Minute
	// maxRemoved bounds what is remembered of items that are gone.
	maxRemoved = 10_000
	// maxGone bounds the devices that are gone in an answer. The drivers count all.
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

// feed takes inventories on request, and tells each viewer what is new.
type feed struct {
	source *inventory.Source
	// epoch tells this process's revisions from those of others.
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

// history is the last inventory, and at which revision each of its items last changed.
// So it is known what is new to a viewer without a list of viewers.
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
	f.forget = time.AfterFunc(keep, f.drop)
	return f
}

// current is the newest revision.
func (f *feed) current() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return f.name(f.revision)
}

// since tells what is new to someone who has a revision, or nil where nothing
// is. Someone who has none, or one that is not known any more, is told all.
func (f *feed) since(name string) *Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	answer := &Answer{Revision: f.name(f.revision), Drivers: f.drivers, Items: []*inventory.Item{}, Gone: f.gone, Unseen: f.unseen}
	if name == answer.Revision {
		return nil
	}
	since, known := f.parse(name)
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

func (f *feed) name(revision uint64) string {
	return fmt.Sprintf("%s-%d", f.epoch, revision)
}

func (f *feed) parse(name string) (revision uint64, known bool) {
	if _, err := fmt.Sscanf(name, f.epoch+"-%d", &revision); err != nil {
		return 0, false
	}
	return revision, revision >= f.oldest && revision < f.revision
}

// refresh takes an inventory if there may be something new.
func (f *feed) refresh() {
	f.forget.Reset(keep)
	if f.items == nil || time.Since(f.taken) >= interval && f.source.Changes() != f.changes {
		f.update(f.take())
	}
}

// take takes an inventory.
func (f *feed) take() *inventory.Inventory {
	f.changes, f.taken = f.source.Changes(), time.Now()
	now := f.source.Take()
	if f.running {
		f.timeline.Note(now, f.taken)
	}
	return now
}

// update compares with the last inventory. What has not changed is kept.
func (h *history) update(now *inventory.Inventory) {
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

// drop forgets the inventory.
func (f *feed) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items, f.kinds, f.removed, f.drivers, f.gone = nil, nil, nil, nil, nil
}
