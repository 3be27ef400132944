package timeline

import (
	"maps"
	"slices"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// totals sum up the pools of each driver.
type totals map[string]*inventory.Driver

// add counts a pool, if there is one, but not the states of its devices.
func (t totals) add(driver string, pool *pool) { t.count(driver, pool, 1) }

// remove is the reverse of add.
func (t totals) remove(driver string, pool *pool) { t.count(driver, pool, -1) }

func (t totals) count(driver string, pool *pool, n int) {
	if pool == nil || driver == "" {
		return
	}
	d := t[driver]
	if d == nil {
		d = &inventory.Driver{Name: driver}
		t[driver] = d
	}
	d.Pools += n
	if pool.slices != pool.count {
		d.IncompletePools += n
	}
	d.Usage.Add(inventory.Usage{Used: float64(n) * pool.usage.Used, Total: float64(n) * pool.usage.Total})
}

// list are those of drivers that have pools, by name.
func (t totals) list() []inventory.Driver {
	list := []inventory.Driver{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if t[name].Pools > 0 {
			list = append(list, *t[name])
		}
	}
	return list
}
