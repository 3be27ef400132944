package resourceslice

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// readHolders returns who else than a node has slices of its pools, by pool. It remembers that the node would have these.
func (m *memory) readHolders(caches *observe.Caches, key facts.SlicesKey, pools []devices.Pool) map[facts.PoolID][]plan.Holder {
	all := map[facts.PoolID][]plan.Holder{}
	for i := range pools {
		id := facts.PoolID{Driver: pools[i].Driver, Pool: pools[i].Name}
		others := slicesOfOthers(caches, key, id)
		if len(others) > 0 { // read again once the key is a contender, so that no deletion goes unseen
			m.addContender(others[0].PoolID, key)
			others = slicesOfOthers(caches, key, id)
		}
		for _, slice := range others {
			all[id] = append(all[id], plan.NewHolder(slice, caches.Nodes.Get(slice.Node)))
		}
	}
	return all
}

// slicesOfOthers returns the slices of a pool that are not planned with a key.
func slicesOfOthers(caches *observe.Caches, key facts.SlicesKey, id facts.PoolID) []*facts.Slice {
	var others []*facts.Slice
	for _, slice := range caches.Slices.InPool(id) {
		if slice.Key() != key {
			others = append(others, slice)
		}
	}
	return others
}

// enqueueHolders queues all that have slices of the pool of a new slice: all but one of them have to give the pool up. The plan
// that made the new slice may not have seen the others.
func (p *Publisher) enqueueHolders(added *facts.Slice) {
	for _, slice := range slicesOfOthers(p.caches, added.Key(), added.PoolID) {
		p.loop.Add(slice.Key())
		p.loop.Add(added.Key())
	}
}

func (m *memory) addContender(id facts.PoolID, key facts.SlicesKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.contenders[id] == nil {
		m.contenders[id] = sets.Set[facts.SlicesKey]{}
	}
	m.contenders[id].Insert(key)
}

// popContenders returns the nodes that may have a pool once a slice of it has gone.
func (m *memory) popContenders(id facts.PoolID) sets.Set[facts.SlicesKey] {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer delete(m.contenders, id)
	return m.contenders[id]
}

// forgetContender forgets a node that is gone.
func (m *memory) forgetContender(key facts.SlicesKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, keys := range m.contenders {
		if keys.Delete(key); len(keys) == 0 {
			delete(m.contenders, id)
		}
	}
}
