package slices

import (
	"cmp"
	"slices"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Nodes names the fake nodes.
func (p *Publisher) Nodes() []string {
	return slices.DeleteFunc(p.nodes.Names(), func(name string) bool { return !p.nodes.Has(name) })
}

// Slices are the slices that are published, by what the cache says.
func (p *Publisher) Slices() []inventory.Slice {
	objects := p.slices.GetStore().List()
	all := make([]inventory.Slice, len(objects))
	for i, object := range objects {
		slice := object.(*Observed)
		all[i] = inventory.Slice{
			Node:       slice.NodeName,
			Driver:     slice.Driver,
			Pool:       slice.Pool.Name,
			Name:       slice.Name,
			Generation: slice.Pool.Generation,
			Count:      slice.Pool.ResourceSliceCount,
			Devices:    slice.Names,
			Taints:     slice.Taints.byDevice(),
		}
	}
	return all
}

// Changes counts what changes Nodes and Slices.
func (p *Publisher) Changes() uint64 {
	return p.changes.Load()
}

// byDevice is nil where no device is tainted.
func (t taintTimes) byDevice() map[string][]inventory.Taint {
	if len(t) == 0 {
		return nil
	}
	taints := map[string][]inventory.Taint{}
	for key, added := range t {
		taints[key.device] = append(taints[key.device], inventory.Taint{
			Key: key.key, Value: key.value, Effect: key.effect, TimeAdded: added.Time,
		})
	}
	for _, list := range taints {
		slices.SortFunc(list, func(a, b inventory.Taint) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
		})
	}
	return taints
}
