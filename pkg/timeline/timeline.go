// Package timeline remembers what the inventories of the last hour said, compactly:
// of the newest one the states of all devices and the claims that have them, and how
// each earlier one differs from the next. So any of them can be told again.
package timeline

import (
	"iter"
	"slices"
	"time"
	"unique"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

const (
	// Length is how long a change is remembered.
	Length = time.Hour
	// most bounds the memory of all changes, in bytes. A change of a pool takes 100 to
	// 200 of them.
	most = 4 << 20
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

// Begun reports whether there was an inventory.
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

// size is what a change takes of the memory.
func (c *change) size() int {
	const fixed, ofVersion = 24, 80
	if c.before == nil {
		return fixed
	}
	return fixed + ofVersion + len(c.before.devices)
}

// Note remembers an inventory that was taken at a time. If a clock was set back, that
// is the time of the last one.
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
	for where, pool := range all(now) {
		former := t.pools[where]
		if former != nil && former.says(pool) {
			pools[where] = former
			continue
		}
		pools[where] = newVersion(pool)
		if !first {
			t.add(change{at.UnixMilli(), where, former.reduced(pools[where])})
		}
	}
	for where, former := range t.pools {
		if pools[where] == nil {
			t.add(change{at.UnixMilli(), where, former})
		}
	}
	t.pools = pools
	t.forget(at)
}

// all are the pools of an inventory, and the nodes on which nothing is published.
func all(now *inventory.Inventory) iter.Seq2[unique.Handle[place], *inventory.Pool] {
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

func (t *Timeline) add(c change) {
	t.changes = append(t.changes, c)
	t.size += c.size()
}

// forget forgets changes that are too old, and the oldest of too many.
func (t *Timeline) forget(now time.Time) {
	n := 0
	for ; n < len(t.changes); n++ {
		c := &t.changes[n]
		if t.size <= most && c.at > now.Add(-Length).UnixMilli() {
			break
		}
		t.begins = time.UnixMilli(c.at)
		t.size -= c.size()
	}
	t.changes = slices.Delete(t.changes, 0, n)
	if oldest := now.Add(-Length); t.Begun() && t.begins.Before(oldest) {
		t.begins = oldest
	}
}
