package timeline

import (
	"maps"
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// totals sum up the pools of each driver.
type totals map[string]*inventory.Driver

// countAddedPool adds a pool that may be nil, without the states of its devices.
func (t totals) countAddedPool(driver string, pool *pool) { t.countPool(driver, pool, 1) }

// removePool is the reverse of countAddedPool.
func (t totals) removePool(driver string, pool *pool) { t.countPool(driver, pool, -1) }

func (t totals) countPool(driver string, pool *pool, n int) {
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

// sortedDrivers returns the totals of drivers that have pools, sorted by name.
func (t totals) sortedDrivers() []inventory.Driver {
	list := []inventory.Driver{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if t[name].Pools > 0 {
			list = append(list, *t[name])
		}
	}
	return list
}
