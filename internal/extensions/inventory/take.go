package inventory

import (
	"cmp"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// Take takes an inventory. Callers share the result and must not change it.
func (s *Source) Take() *Inventory {
	allocations := s.Allocations()
	t := taker{
		source: s, claims: claimsOf(allocations), kinds: map[kindKey]*Kind{}, used: map[string]*Kind{},
		allocated: map[poolKey]allocatedPool{},
	}
	unseen := ""
	if s.TaintRules != nil {
		t.rules, unseen = s.TaintRules()
	}
	items := map[string]*Item{}
	for _, name := range s.Nodes() {
		items[itemIDOfNode(name)] = &Item{ID: itemIDOfNode(name), Node: name, NotReady: !s.isNodeReadyOrShared(name), Pools: []Pool{}}
	}
	drivers := []Driver{}
	for _, members := range newestSlices(s.Slices()) {
		pool := t.takePool(members)
		t.noteAllocated(members[0].Node, &pool)
		if last := len(drivers) - 1; last < 0 || drivers[last].Name != pool.Driver {
			drivers = append(drivers, Driver{Name: pool.Driver})
		}
		drivers[len(drivers)-1].addPool(&pool)
		id := members[0].itemID()
		if items[id] == nil {
			items[id] = &Item{ID: id, Node: members[0].Node, NotReady: !s.isNodeReadyOrShared(members[0].Node)}
		}
		items[id].Pools = append(items[id].Pools, pool)
	}
	sorted := slices.AppendSeq(make([]*Item, 0, len(items)), maps.Values(items))
	slices.SortFunc(sorted, func(a, b *Item) int { return cmp.Compare(a.ID, b.ID) })
	gone := t.goneDevices(allocations)
	return &Inventory{Drivers: addGone(drivers, gone), Items: sorted, Gone: gone, Unseen: unseen, Kinds: t.used}
}

// isNodeReadyOrShared reports whether a node is ready. A pool that nodes share has none.
func (s *Source) isNodeReadyOrShared(node string) bool {
	return node == "" || s.IsNodeReady == nil || s.IsNodeReady(node)
}

func itemIDOfNode(name string) string { return "node/" + name }

func (s *Slice) itemID() string {
	if s.Node != "" {
		return itemIDOfNode(s.Node)
	}
	return "pool/" + s.Driver + "/" + s.Pool
}

// poolKey is a pool as claims name it.
type poolKey struct{ driver, name string }

// newestSlices groups the slices by pool, and drops those that are not of the pool's newest
// generation. Pools are sorted by driver and name, and the slices of a pool by name, as the
// scheduler goes through them.
func newestSlices(all []Slice) [][]*Slice {
	sorted := make([]*Slice, len(all))
	for i := range all {
		sorted[i] = &all[i]
	}
	slices.SortFunc(sorted, func(a, b *Slice) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Node, b.Node),
			cmp.Compare(b.Generation, a.Generation), cmp.Compare(a.Name, b.Name))
	})
	var pools [][]*Slice
	for i, slice := range sorted {
		if i == 0 || slice.Driver != sorted[i-1].Driver || slice.Pool != sorted[i-1].Pool || slice.Node != sorted[i-1].Node {
			pools = append(pools, []*Slice{slice})
		} else if last := len(pools) - 1; slice.Generation == pools[last][0].Generation {
			pools[last] = append(pools[last], slice)
		}
	}
	return pools
}

// claimsOf groups claims by pool and device.
func claimsOf(all []Allocation) map[poolKey]map[string][]Claim {
	pools := map[poolKey]map[string][]Claim{}
	for i := range all {
		key := poolKey{all[i].Driver, all[i].Pool}
		if pools[key] == nil {
			pools[key] = map[string][]Claim{}
		}
		pools[key][all[i].Device] = append(pools[key][all[i].Device], all[i].Claim)
	}
	for _, devices := range pools {
		for _, claims := range devices {
			slices.SortFunc(claims, func(a, b Claim) int {
				return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ShareID, b.ShareID))
			})
		}
	}
	return pools
}

// taker holds the state of one Take.
type taker struct {
	source *Source
	claims map[poolKey]map[string][]Claim
	kinds  map[kindKey]*Kind
	// used are the kinds of pools, by their ids.
	used  map[string]*Kind
	rules []TaintRule
	// allocated are the published pools of which claims have devices.
	allocated map[poolKey]allocatedPool
	remaining remaining
}

func (t *taker) takePool(members []*Slice) Pool {
	pool := Pool{
		Driver:     members[0].Driver,
		Name:       members[0].Pool,
		Generation: members[0].Generation,
		Slices:     int64(len(members)),
		SliceCount: members[0].Count,
	}
	kind := t.kindOf(members)
	pool.Kind = kind.id
	claims := t.claims[poolKey{pool.Driver, pool.Name}]
	isTainted := slices.ContainsFunc(t.rules, func(r TaintRule) bool { return r.selectsPool(pool.Driver, pool.Name) })
	isReady := t.source.isNodeReadyOrShared(members[0].Node)
	if isReady && len(claims) == 0 && !isTainted && !slices.ContainsFunc(members, func(s *Slice) bool { return len(s.Taints) > 0 }) {
		pool.Devices, pool.Usage = kind.free, Usage{Total: kind.total}
		return pool
	}
	pool.Devices = kind.newDevices(claims, members)
	if isTainted {
		for i := range pool.Devices {
			device := &pool.Devices[i]
			device.Taints = slices.Concat(device.Taints, TaintsBy(t.rules, pool.Driver, pool.Name, device.Name))
		}
	}
	pool.Usage = t.remaining.computeStates(kind, pool.Devices)
	if !isReady {
		blockByNode(pool.Devices, members[0].Node)
	}
	return pool
}

func (d *Device) computeState() State {
	if slices.ContainsFunc(d.Taints, Taint.keepsAway) {
		return Tainted
	}
	state := Free
	for i := range d.Claims {
		switch claim := &d.Claims[i]; {
		case claim.AdminAccess: // takes nothing from others
		case claim.Failure != "":
			return Failing
		case claim.Prepared:
			state = Prepared
		case state != Prepared:
			state = Allocated
		}
	}
	if state == Free && d.BlockedBy != "" {
		return Blocked
	}
	return state
}

// keepsAway reports whether the taint keeps Pods away, and is not only for information.
func (t Taint) keepsAway() bool {
	return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
}
