package timeline

import (
	"iter"
	"slices"
	"time"
	"unique"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

const (
	// Length is how long a change is remembered.
	Length = time.Hour
	// maxSize bounds the memory of all changes, in bytes. A change of a pool takes 100 to 200 bytes.
	maxSize = 4 << 20
)

// Timeline remembers inventories. It is not safe for concurrent use.
type Timeline struct {
	// begins is zero before the first inventory, and ends is when the last one was.
	begins, ends time.Time
	// drivers and pools are those of the last inventory.
	drivers []inventory.Driver
	pools   map[unique.Handle[place]]*version
	// changes are in the order of their times, and take size bytes.
	changes []change
	size    int
}

// Begun reports whether any inventory was recorded.
func (t *Timeline) Begun() bool { return !t.begins.IsZero() }

// place is a pool, or a node on which nothing is published: it has no driver then.
type place struct {
	// id and node are those of the item.
	id, node     string
	driver, pool string
}

// change says that a pool became another.
type change struct {
	// at is in milliseconds since 1970.
	at    int64
	place unique.Handle[place]
	// before is what the pool was like, or nil where there was none.
	before *version
}

// memorySize returns how many bytes of memory a change takes.
func (c *change) memorySize() int {
	const fixed, ofVersion = 24, 80
	if c.before == nil {
		return fixed
	}
	return fixed + ofVersion + len(c.before.devices)
}

// Note records an inventory that was taken at a time. If a clock was set back, it counts as taken at
// the time of the last one.
func (t *Timeline) Note(now *inventory.Inventory, at time.Time) {
	at = at.Truncate(time.Millisecond)
	if at.Before(t.ends) {
		at = t.ends
	}
	first := !t.Begun()
	if first {
		t.begins = at
	}
	t.ends, t.drivers = at, now.Drivers
	pools := make(map[unique.Handle[place]]*version, len(t.pools))
	for where, pool := range poolsOf(now) {
		former := t.pools[where]
		if former != nil && former.describesPool(pool) {
			pools[where] = former
			continue
		}
		pools[where] = newVersion(pool)
		if !first {
			t.addChange(change{at.UnixMilli(), where, former.reduceTo(pools[where])})
		}
	}
	for where, former := range t.pools {
		if pools[where] == nil {
			t.addChange(change{at.UnixMilli(), where, former})
		}
	}
	t.pools = pools
	t.forgetOld(at)
}

// poolsOf yields the pools of an inventory, and the nodes on which nothing is published.
func poolsOf(now *inventory.Inventory) iter.Seq2[unique.Handle[place], *inventory.Pool] {
	nothing := &inventory.Pool{}
	return func(yield func(unique.Handle[place], *inventory.Pool) bool) {
		for _, item := range now.Items {
			if len(item.Pools) == 0 && !yield(unique.Make(place{id: item.ID, node: item.Node}), nothing) {
				return
			}
			for i := range item.Pools {
				pool := &item.Pools[i]
				if !yield(unique.Make(place{item.ID, item.Node, pool.Driver, pool.Name}), pool) {
					return
				}
			}
		}
	}
}

func (t *Timeline) addChange(c change) {
	t.changes = append(t.changes, c)
	t.size += c.memorySize()
}

// forgetOld drops changes that are older than Length, and the oldest ones if they take too much memory.
func (t *Timeline) forgetOld(now time.Time) {
	n := 0
	for ; n < len(t.changes); n++ {
		c := &t.changes[n]
		if t.size <= maxSize && c.at > now.Add(-Length).UnixMilli() {
			break
		}
		t.begins = time.UnixMilli(c.at)
		t.size -= c.memorySize()
	}
	t.changes = slices.Delete(t.changes, 0, n)
	if oldest := now.Add(-Length); t.Begun() && t.begins.Before(oldest) {
		t.begins = oldest
	}
}
