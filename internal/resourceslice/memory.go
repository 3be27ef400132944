package resourceslice

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// lateSlices is how long slices of a node that has left the selection may still come: from
// a write in progress, or from a replica that sees the node leave later.
const lateSlices = 5 * time.Minute

// memory is what the Publisher remembers of each node, and of each pool that nodes share,
// from one reconciliation to the next.
type memory struct {
	conflicts conflictBackoff

	mu      sync.Mutex
	entries map[facts.SlicesKey]*entry
}

func newMemory() *memory {
	return &memory{conflicts: newConflictBackoff(), entries: map[facts.SlicesKey]*entry{}}
}

// entry is what is remembered of one key. An empty one is not kept.
type entry struct {
	// isManaged says that the node is, or was, fake. While slices of it may still come, the
	// entry tells that they are not someone else's.
	isManaged bool
	// emptySince is when a node that is no longer fake was first seen without slices.
	emptySince time.Time
	previous   plan.Previous
	// changedAt is the time of the first event of the node that was not reconciled yet.
	changedAt time.Time
	// isTemplated says that a template has had the shared pool exist since the process began.
	isTemplated bool
	witness     witness
	// hasForeignWrites says that others have changed the slices, and that nothing that the
	// plan depends on has changed since.
	hasForeignWrites bool
	// unrecorded has the UIDs of slices without a record that were obsolete.
	unrecorded sets.Set[types.UID]
	// takenFrom has the installations from which slices were taken over since the node was
	// selected, by driver. It may be this one under its former name. If an installation
	// takes its slices back, it is alive, and keeps them.
	takenFrom map[string]installation.ID
}

// witness is a node that requires a shared pool, or, until one is found, the node that is
// being examined.
type witness struct {
	node    string
	isFound bool
}

// entryOf returns a copy of what is remembered of a key.
func (m *memory) entryOf(key facts.SlicesKey) (known entry) {
	m.updateEntry(key, func(e *entry) { known = *e })
	return known
}

// updateEntry changes what is remembered of a key.
func (m *memory) updateEntry(key facts.SlicesKey, change func(*entry)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil {
		e = &entry{}
	}
	change(e)
	m.entries[key] = e
	isOfNode := e.isManaged || !e.changedAt.IsZero() || e.unrecorded != nil || e.takenFrom != nil
	if !isOfNode && !e.hasForeignWrites && !e.isTemplated && e.witness == (witness{}) {
		delete(m.entries, key)
	}
}

// forgetForeignWrites notes that the slices are as they should be, or that what they depend
// on has changed: the next writes do not wait for others.
func (m *memory) forgetForeignWrites(key facts.SlicesKey) {
	m.updateEntry(key, func(e *entry) { e.hasForeignWrites = false })
}

// knownKeys are all keys of which something is remembered.
func (m *memory) knownKeys() []facts.SlicesKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.entries))
}

// leaveSelection notes that the node is not fake, and whether it has slices. It returns for
// how long slices may still come that only the entry tells from someone else's. After that it
// forgets the node, or at once if nobody else can have slices.
func (e *entry) leaveSelection(isEmpty, mayBeOthers bool) (wait time.Duration) {
	if !isEmpty {
		e.emptySince = time.Time{}
		return 0
	}
	if e.emptySince.IsZero() {
		e.emptySince = time.Now()
	}
	wait = lateSlices - time.Since(e.emptySince)
	if wait <= 0 || !mayBeOthers {
		e.isManaged, e.emptySince = false, time.Time{}
		return 0
	}
	return wait
}

// mayRetire reports whether an installation may delete obsolete slices. Versions before
// records have left theirs without one: they go once. If others come without one, another
// installation of such a version makes them, and would do so for ever.
func (m *memory) mayRetire(as installation.ID, key facts.SlicesKey, existing []*facts.Slice) (mayRetire bool) {
	if as == "" || !slices.Contains(plan.InstallationsOf(existing), "") {
		return true
	}
	found := sets.New[types.UID]()
	for _, slice := range existing {
		found.Insert(slice.UID)
	}
	m.updateEntry(key, func(e *entry) {
		if e.unrecorded == nil {
			e.unrecorded = found
		}
		mayRetire = e.unrecorded.IsSuperset(found)
	})
	return mayRetire
}

// noteTakeOver notes that slices of a driver were taken over from another installation.
func (m *memory) noteTakeOver(key facts.SlicesKey, driver string, from installation.ID) {
	m.updateEntry(key, func(e *entry) {
		e.takenFrom = maps.Clone(e.takenFrom) // copies of the entry are read without the lock
		if e.takenFrom == nil {
			e.takenFrom = map[string]installation.ID{}
		}
		e.takenFrom[driver] = from
	})
}
