package timeline

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// past goes back in time, one change after the other.
type past struct {
	timeline *Timeline
	// left is how many changes have not been undone.
	left int
	// pools are those that have changed since, and nil where there was none.
	pools map[unique.Handle[place]]*pool
}

// pool is a pool as it was.
type pool struct {
	version
	list []inventory.Device
}

// tell is told of a device that became another. One that was not there, or no longer
// is, is nil.
type tell func(before, after *inventory.Device)

func (t *Timeline) past() *past {
	return &past{timeline: t, left: len(t.changes), pools: map[unique.Handle[place]]*pool{}}
}

// next is the change to undo next, or nil.
func (p *past) next() *change {
	if p.left == 0 {
		return nil
	}
	return &p.timeline.changes[p.left-1]
}

// undo undoes the next change, and returns the pool before it and after it.
func (p *past) undo(tell tell) (before, after *pool) {
	c := p.next()
	p.left--
	after = p.at(c.place)
	switch {
	case c.before == nil:
		after.compare(nil, tell)
	case after == nil || after.names != c.before.names:
		before = &pool{*c.before, c.before.list()}
		after.compare(before, tell)
	default:
		before = &pool{*c.before, after.list}
		for i, was := range c.before.lines() {
			was.Name = after.list[i].Name
			tell(&was, &after.list[i])
			before.list[i] = was
		}
	}
	p.pools[c.place] = before
	return before, after
}

// at is a pool as it was, or nil.
func (p *past) at(where unique.Handle[place]) *pool {
	if known, changed := p.pools[where]; changed {
		return known
	}
	if now := p.timeline.pools[where]; now != nil {
		return &pool{*now, now.list()}
	}
	return nil
}

// compare tells what was published and retired since, and what differs otherwise.
func (p *pool) compare(former *pool, tell tell) {
	before := map[string]*inventory.Device{}
	if former != nil {
		for i := range former.list {
			before[former.list[i].Name] = &former.list[i]
		}
	}
	if p != nil {
		for i := range p.list {
			after := &p.list[i]
			was := before[after.Name]
			if was == nil || !same(was, after) {
				tell(was, after)
			}
			delete(before, after.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		tell(before[name], nil)
	}
}

// At is the inventory of a time, as far as it is remembered, and which time that is: the
// beginning of the timeline if the time was before it, or its end. The result has no more
// of a device than its name, state and claims, and of a claim no more than its name and
// whether it is prepared or has admin access.
func (t *Timeline) At(asked time.Time) (*inventory.Inventory, time.Time) {
	at := asked
	if at.Before(t.begins) {
		at = t.begins
	}
	if at.After(t.ends) {
		at = t.ends
	}
	p := t.past()
	for c := p.next(); c != nil && c.at > at.UnixMilli(); c = p.next() {
		p.undo(func(_, _ *inventory.Device) {})
	}
	return p.inventory(), at
}

func (p *past) inventory() *inventory.Inventory {
	items := map[string]*inventory.Item{}
	totals := totals{}
	add := func(where unique.Handle[place]) {
		pool, name := p.at(where), where.Value()
		if pool == nil {
			return
		}
		item := items[name.id]
		if item == nil {
			item = &inventory.Item{ID: name.id, Node: name.node, Pools: []inventory.Pool{}}
			items[name.id] = item
		}
		if name.driver == "" {
			return
		}
		item.Pools = append(item.Pools, pool.published(name))
		totals.add(name.driver, pool)
		for i := range pool.list {
			totals[name.driver].States[pool.list[i].State]++
		}
	}
	for where := range p.timeline.pools {
		add(where)
	}
	for where := range p.pools {
		if p.timeline.pools[where] == nil {
			add(where)
		}
	}
	return sorted(items, totals)
}

func (p *pool) published(where place) inventory.Pool {
	return inventory.Pool{
		Driver: where.driver, Name: where.pool, Generation: p.generation,
		Slices: p.slices, SliceCount: p.count, Usage: p.usage, Kind: p.kind, Devices: p.list,
	}
}

func sorted(items map[string]*inventory.Item, totals totals) *inventory.Inventory {
	result := &inventory.Inventory{Drivers: totals.list(), Items: slices.AppendSeq([]*inventory.Item{}, maps.Values(items))}
	slices.SortFunc(result.Items, func(a, b *inventory.Item) int { return cmp.Compare(a.ID, b.ID) })
	for _, item := range result.Items {
		slices.SortFunc(item.Pools, func(a, b inventory.Pool) int {
			return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
		})
	}
	return result
}
