package inventory

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// Take takes an inventory. The result is shared and must not be changed.
func (s *Source) Take() *Inventory {
	t := taker{claims: map[poolKey]map[string][]Claim{}, free: map[Names][]Device{}}
	for _, allocation := range s.Allocations() {
		t.allocate(allocation)
	}
	items := map[string]*Item{}
	for _, name := range s.Nodes() {
		items[nodeID(name)] = &Item{ID: nodeID(name), Node: name, Pools: []Pool{}}
	}
	for of, members := range newest(s.Slices()) {
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

// taker takes one inventory.
type taker struct {
	// claims are by pool and device.
	claims map[poolKey]map[string][]Claim
	// free are the devices of slices of which all are free, as most are: such slices
	// of the same names share them.
	free map[Names][]Device
}

func (t *taker) allocate(a Allocation) {
	key := poolKey{a.Driver, a.Pool}
	if t.claims[key] == nil {
		t.claims[key] = map[string][]Claim{}
	}
	t.claims[key][a.Device] = append(t.claims[key][a.Device], a.Claim)
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
	claims := t.claims[poolKey{pool.Driver, pool.Name}]
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

func (t *taker) devices(slice *Slice, claims map[string][]Claim) []Device {
	if len(claims)+len(slice.Taints) > 0 {
		return devicesOf(slice, claims)
	}
	if _, known := t.free[slice.Devices]; !known {
		t.free[slice.Devices] = devicesOf(slice, nil)
	}
	return t.free[slice.Devices]
}

func devicesOf(slice *Slice, claims map[string][]Claim) []Device {
	names := slice.Devices.List()
	devices := make([]Device, len(names))
	for i, name := range names {
		devices[i] = Device{Name: name, Claims: sorted(claims[name]), Taints: slice.Taints[name]}
		devices[i].State = devices[i].state()
	}
	return devices
}

func sorted(claims []Claim) []Claim {
	slices.SortFunc(claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ShareID, b.ShareID))
	})
	return claims
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

// keepsAway tells whether the taint has any effect on Pods.
func (t Taint) keepsAway() bool {
	return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
}
