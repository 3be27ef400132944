package generate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// pool is one that a driver has published.
type pool struct {
	driver, name string
	// slices are those of the newest generation, in the order in which the scheduler
	// goes through them.
	slices []*resourcev1.ResourceSlice
	// all are the devices of all slices, once they have been asked for.
	all []resourcev1.Device
}

// node is the name of the node whose pool it is, or empty for one that nodes
// share.
func (p *pool) node() string {
	if name := p.slices[0].Spec.NodeName; name != nil {
		return *name
	}
	return ""
}

func (p *pool) devices() []resourcev1.Device {
	if p.all == nil {
		for _, slice := range p.slices {
			p.all = append(p.all, slice.Spec.Devices...)
		}
	}
	return p.all
}

func (p *pool) counterSets() []resourcev1.CounterSet {
	var all []resourcev1.CounterSet
	for _, slice := range p.slices {
		all = append(all, slice.Spec.SharedCounters...)
	}
	return all
}

// poolsOf puts slices together to pools. Pools of which slices are missing are
// left out, and named.
func poolsOf(all []*resourcev1.ResourceSlice, drivers []string) (pools []*pool, incomplete []string) {
	type key struct{ driver, name string }
	byKey := map[key]*pool{}
	for _, slice := range all {
		spec := &slice.Spec
		if len(drivers) > 0 && !slices.Contains(drivers, spec.Driver) {
			continue
		}
		k := key{spec.Driver, spec.Pool.Name}
		if byKey[k] == nil {
			byKey[k] = &pool{driver: spec.Driver, name: spec.Pool.Name}
		}
		byKey[k].add(slice)
	}
	for _, p := range byKey {
		if int64(len(p.slices)) != p.slices[0].Spec.Pool.ResourceSliceCount {
			incomplete = append(incomplete, fmt.Sprintf("pool %s of driver %s is left out: it has %d of %d slices",
				p.name, p.driver, len(p.slices), p.slices[0].Spec.Pool.ResourceSliceCount))
			continue
		}
		slices.SortFunc(p.slices, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
		pools = append(pools, p)
	}
	slices.Sort(incomplete)
	slices.SortFunc(pools, func(a, b *pool) int { return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.name, b.name)) })
	return pools, incomplete
}

// add adds a slice, unless it is older than those that are there.
func (p *pool) add(slice *resourcev1.ResourceSlice) {
	if len(p.slices) > 0 {
		switch newest := p.slices[0].Spec.Pool.Generation; {
		case slice.Spec.Pool.Generation < newest:
			return
		case slice.Spec.Pool.Generation > newest:
			p.slices = nil
		}
	}
	p.slices = append(p.slices, slice)
}

// member is a node with the pools of a driver on it.
type member struct {
	node  *corev1.Node
	pools []*pool
}

// marker stands for the name of the node.
const marker = "\x00"

// withoutName puts the marker in place of the node's name.
func (m *member) withoutName(text string) string {
	return strings.ReplaceAll(text, m.node.Name, marker)
}

// shape is all of a member that nodes with one template must have in common: all
// but the values of attributes.
func (m *member) shape() (string, error) {
	var text strings.Builder
	for _, p := range m.pools {
		name := m.withoutName(p.name)
		if !strings.Contains(name, marker) {
			name = ""
		}
		fmt.Fprintf(&text, "%s\n", name)
		for _, slice := range p.slices {
			spec := slice.Spec
			spec.NodeName, spec.Pool, spec.Devices = nil, resourcev1.ResourcePool{}, nil
			encoded, err := json.Marshal(spec)
			if err != nil {
				return "", fmt.Errorf("encode slice %s: %w", slice.Name, err)
			}
			fmt.Fprintf(&text, "%s\n", encoded)
			for i := range slice.Spec.Devices {
				device := &slice.Spec.Devices[i]
				shape, err := shapeOf(device)
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&text, "%s %s %s\n", device.Name, shape, namesIn(device))
			}
		}
	}
	return text.String(), nil
}

// shapeOf is all of a device but its name, those of counter sets and nodes, and
// the values of its attributes.
func shapeOf(device *resourcev1.Device) (string, error) {
	bare := *device
	bare.Name, bare.NodeName, bare.Attributes = "", nil, nil
	bare.Taints = slices.Clone(device.Taints)
	for i := range bare.Taints {
		bare.Taints[i].TimeAdded = nil
	}
	bare.ConsumesCounters = slices.Clone(device.ConsumesCounters)
	for i := range bare.ConsumesCounters {
		bare.ConsumesCounters[i].CounterSet = ""
	}
	encoded, err := json.Marshal(bare)
	if err != nil {
		return "", fmt.Errorf("encode device %s: %w", device.Name, err)
	}
	var text strings.Builder
	text.Write(encoded)
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		typ, values := valuesOf(device.Attributes[name])
		fmt.Fprintf(&text, " %s:%s:%d", name, typ, len(values))
	}
	return text.String(), nil
}

// namesIn are the names that a device refers to.
func namesIn(device *resourcev1.Device) []string {
	var names []string
	if device.NodeName != nil {
		names = append(names, *device.NodeName)
	}
	for _, consumption := range device.ConsumesCounters {
		names = append(names, consumption.CounterSet)
	}
	return names
}
