package timeline

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
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

// reportDevice is called with a changed device. Before is nil for a new device, and after for one that
// was retired.
type reportDevice func(before, after *inventory.Device)

func (t *Timeline) newPast() *past {
	return &past{timeline: t, left: len(t.changes), pools: map[unique.Handle[place]]*pool{}}
}

// nextChange returns the change to undo next, or nil.
func (p *past) nextChange() *change {
	if p.left == 0 {
		return nil
	}
	return &p.timeline.changes[p.left-1]
}

// undoChange undoes the next change, reports each device that it changed, and returns the pool before
// and after it.
func (p *past) undoChange(report reportDevice) (before, after *pool) {
	c := p.nextChange()
	p.left--
	after = p.poolAt(c.place)
	switch {
	case c.before == nil:
		after.compareDevices(nil, report)
	case after == nil || after.names != c.before.names:
		before = &pool{*c.before, c.before.listDevices()}
		after.compareDevices(before, report)
	default:
		before = &pool{*c.before, after.list}
		for i, was := range c.before.deviceLines() {
			was.Name = after.list[i].Name
			report(&was, &after.list[i])
			before.list[i] = was
		}
	}
	p.pools[c.place] = before
	return before, after
}

// poolAt returns a pool as it was, or nil if it did not exist.
func (p *past) poolAt(where unique.Handle[place]) *pool {
	if known, changed := p.pools[where]; changed {
		return known
	}
	if now := p.timeline.pools[where]; now != nil {
		return &pool{*now, now.listDevices()}
	}
	return nil
}

// compareDevices reports the devices that were published, retired or changed since the former pool.
func (p *pool) compareDevices(former *pool, report reportDevice) {
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
			if was == nil || !isSameDevice(was, after) {
				report(was, after)
			}
			delete(before, after.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		report(before[name], nil)
	}
}

// At returns the inventory of a time, as far as it is remembered, and that time. A time before the
// beginning of the timeline is taken for its beginning, and one after its end for its end. Of a
// device, the result has the name, state and claims only, and of a claim its name and whether it is
// prepared or has admin access.
func (t *Timeline) At(asked time.Time) (*inventory.Inventory, time.Time) {
	at := asked
	if at.Before(t.begins) {
		at = t.begins
	}
	if at.After(t.ends) {
		at = t.ends
	}
	p := t.newPast()
	for c := p.nextChange(); c != nil && c.at > at.UnixMilli(); c = p.nextChange() {
		p.undoChange(func(_, _ *inventory.Device) {})
	}
	return p.buildInventory(), at
}

func (p *past) buildInventory() *inventory.Inventory {
	items := map[string]*inventory.Item{}
	totals := totals{}
	add := func(where unique.Handle[place]) {
		pool, name := p.poolAt(where), where.Value()
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
		item.Pools = append(item.Pools, inventory.Pool{
			Driver: name.driver, Name: name.pool, Generation: pool.generation,
			Slices: pool.slices, SliceCount: pool.count, Usage: pool.usage, Kind: pool.kind, Devices: pool.list,
		})
		totals.countAddedPool(name.driver, pool)
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
	return sortedInventory(items, totals)
}

func sortedInventory(items map[string]*inventory.Item, totals totals) *inventory.Inventory {
	result := &inventory.Inventory{Drivers: totals.sortedDrivers(), Items: slices.AppendSeq([]*inventory.Item{}, maps.Values(items))}
	slices.SortFunc(result.Items, func(a, b *inventory.Item) int { return cmp.Compare(a.ID, b.ID) })
	for _, item := range result.Items {
		slices.SortFunc(item.Pools, func(a, b inventory.Pool) int {
			return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
		})
	}
	return result
}
