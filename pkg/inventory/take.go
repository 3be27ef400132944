package inventory

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// Take takes an inventory. The result is shared and must not be changed.
func (s *Source) Take() *Inventory {
	published := s.Slices()
	t := taker{allocations: byPool(s.Allocations()), free: map[Names][]Device{}}
	items := make(map[string]*Item, len(published))
	for _, name := range s.Nodes() {
		items[nodeID(name)] = &Item{ID: nodeID(name), Node: name, Pools: []Pool{}}
	}
	for of, members := range newest(published) {
		item := items[of.id]
		if item == nil {
			item = &Item{ID: of.id, Node: members[0].Node}
			items[of.id] = item
		}
		item.Pools = append(item.Pools, t.pool(members))
	}
	sorted := make([]*Item, 0, len(items))
	for _, item := range items {
		slices.SortFunc(item.Pools, func(a, b Pool) int {
			return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
		})
		sorted = append(sorted, item)
	}
	slices.SortFunc(sorted, func(a, b *Item) int { return cmp.Compare(a.ID, b.ID) })
	return &Inventory{Drivers: sum(sorted), Items: sorted}
}

func nodeID(name string) string { return "node/" + name }

// poolKey is a pool as claims name it.
type poolKey struct{ driver, name string }

// placedPool is a pool of an item.
type placedPool struct {
	id string
	poolKey
}

func (s *Slice) placedPool() placedPool {
	of := placedPool{poolKey: poolKey{s.Driver, s.Pool}}
	if s.Node != "" {
		of.id = nodeID(s.Node)
	} else {
		of.id = "pool/" + s.Driver + "/" + s.Pool
	}
	return of
}

// newest gathers the slices of each pool that are of its newest generation, in
// the order of their names, as the scheduler goes through them.
func newest(all []Slice) map[placedPool][]*Slice {
	pools := make(map[placedPool][]*Slice, len(all))
	for i := range all {
		slice := &all[i]
		of := slice.placedPool()
		members := pools[of]
		switch {
		case len(members) == 0 || members[0].Generation == slice.Generation:
			pools[of] = append(members, slice)
		case members[0].Generation < slice.Generation:
			pools[of] = []*Slice{slice}
		}
	}
	for _, members := range pools {
		slices.SortFunc(members, func(a, b *Slice) int { return cmp.Compare(a.Name, b.Name) })
	}
	return pools
}

// byPool groups allocations.
func byPool(all []Allocation) map[poolKey][]*Allocation {
	pools := map[poolKey][]*Allocation{}
	for i := range all {
		key := poolKey{all[i].Driver, all[i].Pool}
		pools[key] = append(pools[key], &all[i])
	}
	return pools
}

// taker takes one inventory.
type taker struct {
	allocations map[poolKey][]*Allocation
	// free are the devices of slices of which all are free, as most are: such slices
	// of the same names share them.
	free map[Names][]Device
}

func (t *taker) pool(members []*Slice) Pool {
	pool := Pool{
		Driver:     members[0].Driver,
		Name:       members[0].Pool,
		Generation: members[0].Generation,
		Slices:     int64(len(members)),
		SliceCount: members[0].Count,
		Devices:    []Device{},
	}
	claims := claimsOf(t.allocations[poolKey{pool.Driver, pool.Name}])
	for _, slice := range members {
		devices := t.devices(slice, claims)
		if len(pool.Devices) == 0 {
			pool.Devices = slices.Clip(devices) // perhaps shared
		} else {
			pool.Devices = append(pool.Devices, devices...)
		}
	}
	return pool
}

func (t *taker) devices(slice *Slice, claims poolClaims) []Device {
	if len(claims.claims)+len(slice.Taints) > 0 {
		return devicesOf(slice, claims)
	}
	if _, known := t.free[slice.Devices]; !known {
		t.free[slice.Devices] = devicesOf(slice, claims)
	}
	return t.free[slice.Devices]
}

func devicesOf(slice *Slice, claims poolClaims) []Device {
	names := slice.Devices.List()
	devices := make([]Device, len(names))
	for i, name := range names {
		devices[i] = Device{Name: name, Claims: claims.of(name), Taints: slice.Taints[name]}
		devices[i].State = devices[i].state()
	}
	return devices
}

// poolClaims are the claims that have devices of a pool, beside the names of these
// devices, in whose order they are.
type poolClaims struct {
	devices []string
	claims  []Claim
}

func claimsOf(allocations []*Allocation) poolClaims {
	slices.SortFunc(allocations, func(a, b *Allocation) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device),
			cmp.Compare(a.Claim.Namespace, b.Claim.Namespace), cmp.Compare(a.Claim.Name, b.Claim.Name), cmp.Compare(a.Claim.ShareID, b.Claim.ShareID))
	})
	c := poolClaims{make([]string, len(allocations)), make([]Claim, len(allocations))}
	for i, allocation := range allocations {
		c.devices[i], c.claims[i] = allocation.Device, allocation.Claim
	}
	return c
}

// of is nil where no claim has the device.
func (c poolClaims) of(device string) []Claim {
	from, found := slices.BinarySearch(c.devices, device)
	if !found {
		return nil
	}
	to := from + 1
	for to < len(c.devices) && c.devices[to] == device {
		to++
	}
	return c.claims[from:to:to]
}

func (d *Device) state() State {
	if slices.ContainsFunc(d.Taints, Taint.keepsAway) {
		return Tainted
	}
	state := Free
	for i := range d.Claims {
		switch {
		case d.Claims[i].AdminAccess: // takes nothing from others
		case d.Claims[i].Prepared:
			return Prepared
		default:
			state = Allocated
		}
	}
	return state
}

// keepsAway reports whether the taint has any effect on Pods.
func (t Taint) keepsAway() bool {
	return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
}
