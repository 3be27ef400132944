package inventory

import (
	"cmp"
	"slices"
)

// GoneDevice is a device that claims have and that no slice publishes any more. Its
// state is Gone.
type GoneDevice struct {
	// Node is that of the claims, or else of the pool. It is empty for a device that nodes share.
	Node   string `json:"node,omitempty"`
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device
}

// gone are the devices that claims have and no pool has, and that would be known if any
// slice published them. Of an incomplete pool nothing is known to be gone.
func (t *taker) gone(allocations []Allocation) []GoneDevice {
	var all []GoneDevice
	for key, devices := range t.claims {
		if t.incomplete[key] {
			continue
		}
		for name, claims := range devices {
			if !t.published[key][name] {
				taints := TaintsBy(t.rules, key.driver, key.name, name)
				all = append(all, GoneDevice{Driver: key.driver, Pool: key.name, Device: Device{Name: name, State: Gone, Claims: claims, Taints: taints}})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	type device struct{ driver, pool, name string }
	covered := map[device]string{}
	for i := range allocations {
		if a := &allocations[i]; a.Covered {
			covered[device{a.Driver, a.Pool, a.Device}] = a.Node
		}
	}
	all = slices.DeleteFunc(all, func(d GoneDevice) bool {
		_, known := covered[device{d.Driver, d.Pool, d.Name}]
		return !known
	})
	for i := range all {
		d := &all[i]
		d.Node = cmp.Or(covered[device{d.Driver, d.Pool, d.Name}], t.nodes[poolKey{d.Driver, d.Pool}])
	}
	slices.SortFunc(all, func(a, b GoneDevice) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// note remembers which devices of a pool that claims name are published.
func (t *taker) note(node string, pool *Pool) {
	key := poolKey{pool.Driver, pool.Name}
	if t.claims[key] == nil {
		return
	}
	t.nodes[key] = node
	t.incomplete[key] = t.incomplete[key] || !pool.Complete()
	for i := range pool.Devices {
		if pool.Devices[i].Claims == nil {
			continue
		}
		if t.published[key] == nil {
			t.published[key] = map[string]bool{}
		}
		t.published[key][pool.Devices[i].Name] = true
	}
}

// addGone counts devices that are gone with their drivers, which may have no pool any more.
func addGone(drivers []Driver, gone []GoneDevice) []Driver {
	for i := range gone {
		at, known := slices.BinarySearchFunc(drivers, gone[i].Driver, func(d Driver, name string) int { return cmp.Compare(d.Name, name) })
		if !known {
			drivers = slices.Insert(drivers, at, Driver{Name: gone[i].Driver})
		}
		drivers[at].Gone++
	}
	return drivers
}
