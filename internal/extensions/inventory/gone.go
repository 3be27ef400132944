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

// goneDevices returns the devices that claims have and no pool has. A device of a slice that the
// source does not read is left out, and so are those of incomplete pools.
func (t *taker) goneDevices(allocations []Allocation) []GoneDevice {
	var all []GoneDevice
	for key, devices := range t.claims {
		pool := t.allocated[key]
		if pool.incomplete || pool.whole {
			continue
		}
		for name, claims := range devices {
			if !pool.devices[name] {
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
		d.Node = cmp.Or(covered[device{d.Driver, d.Pool, d.Name}], t.allocated[poolKey{d.Driver, d.Pool}].node)
	}
	slices.SortFunc(all, func(a, b GoneDevice) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// allocatedPool is a published pool of which claims have devices.
type allocatedPool struct {
	// node is empty for a pool that nodes share.
	node string
	// incomplete says that slices are missing, and whole that the pool has all devices that
	// claims have of it.
	incomplete, whole bool
	// devices are those with claims, of a pool that is not whole.
	devices map[string]bool
}

// noteAllocated remembers which of the devices that claims have a pool publishes. Most pools publish all.
func (t *taker) noteAllocated(node string, pool *Pool) {
	key := poolKey{pool.Driver, pool.Name}
	claims := t.claims[key]
	if len(claims) == 0 {
		return
	}
	known := t.allocated[key]
	known.node, known.incomplete = node, known.incomplete || !pool.Complete()
	count := 0
	for i := range pool.Devices {
		if pool.Devices[i].Claims != nil {
			count++
		}
	}
	known.whole = known.whole || count == len(claims)
	if !known.whole && known.devices == nil {
		known.devices = map[string]bool{}
	}
	for i := range pool.Devices {
		if !known.whole && pool.Devices[i].Claims != nil {
			known.devices[pool.Devices[i].Name] = true
		}
	}
	t.allocated[key] = known
}

// addGone counts gone devices with their drivers, some of which may have no pool any more.
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
