package generate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// pool is one that a driver has published.
type pool struct {
	driver, name string
	// slices are those of the newest generation, in the order in which the scheduler
	// goes through them.
	slices []*resourcev1.ResourceSlice
	// all caches the devices of all slices.
	all []resourcev1.Device
}

// nodeName is the name of the node whose pool it is, or empty for one that nodes
// share.
func (p *pool) nodeName() string { return nodeNameOf(p.slices[0]) }

func nodeNameOf(slice *resourcev1.ResourceSlice) string {
	if name := slice.Spec.NodeName; name != nil {
		return *name
	}
	return ""
}

// reachesNode reports whether a node has devices of a slice.
func reachesNode(slice *resourcev1.ResourceSlice, node *corev1.Node) bool {
	spec := &slice.Spec
	if spec.PerDeviceNodeSelection == nil || !*spec.PerDeviceNodeSelection {
		return selectsNode(spec.NodeName, spec.NodeSelector, spec.AllNodes, node)
	}
	return slices.ContainsFunc(spec.Devices, func(device resourcev1.Device) bool {
		return selectsNode(device.NodeName, device.NodeSelector, device.AllNodes, node)
	})
}

func selectsNode(name *string, selector *corev1.NodeSelector, all *bool, node *corev1.Node) bool {
	if selector != nil {
		matches, err := corev1helpers.MatchNodeSelectorTerms(node, selector)
		return err == nil && matches
	}
	return name != nil && *name == node.Name || all != nil && *all
}

func (p *pool) listDevices() []resourcev1.Device {
	if p.all == nil {
		for _, slice := range p.slices {
			p.all = append(p.all, slice.Spec.Devices...)
		}
	}
	return p.all
}

// String names the pool.
func (p *pool) String() string { return fmt.Sprintf("%s of driver %s", p.name, p.driver) }

// groupPools groups slices by pool. It leaves out what the scheduler does not use either: slices of an older
// generation, and incomplete pools. It leaves out pools without devices too, since a template cannot make
// them.
func groupPools(all []*resourcev1.ResourceSlice, drivers []string) (pools []*pool, left []leftOut) {
	type key struct{ driver, name string }
	byKey := map[key]*pool{}
	for _, slice := range all {
		spec := &slice.Spec
		if len(drivers) > 0 && !slices.Contains(drivers, spec.Driver) {
			left = append(left, leftOut{"ResourceSlice", slice.Name, "--driver does not name driver " + spec.Driver})
			continue
		}
		k := key{spec.Driver, spec.Pool.Name}
		if byKey[k] == nil {
			byKey[k] = &pool{driver: spec.Driver, name: spec.Pool.Name}
		}
		byKey[k].slices = append(byKey[k].slices, slice)
	}
	for _, p := range slices.SortedFunc(maps.Values(byKey), func(a, b *pool) int { return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.name, b.name)) }) {
		newest := slices.MaxFunc(p.slices, func(a, b *resourcev1.ResourceSlice) int {
			return cmp.Compare(a.Spec.Pool.Generation, b.Spec.Pool.Generation)
		}).Spec.Pool.Generation
		p.slices = slices.DeleteFunc(p.slices, func(slice *resourcev1.ResourceSlice) bool {
			isOlder := slice.Spec.Pool.Generation < newest
			if isOlder {
				left = append(left, leftOut{"ResourceSlice", slice.Name, "its pool has a newer generation"})
			}
			return isOlder
		})
		slices.SortFunc(p.slices, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
		if reason := p.reasonUnusable(); reason != "" {
			left = append(left, newLeftOutPool(p, errors.New(reason)))
			continue
		}
		p.slices = slices.DeleteFunc(p.slices, func(slice *resourcev1.ResourceSlice) bool {
			isEmpty := len(slice.Spec.Devices)+len(slice.Spec.SharedCounters) == 0
			if isEmpty {
				left = append(left, leftOut{"ResourceSlice", slice.Name, "it has no device"})
			}
			return isEmpty
		})
		pools = append(pools, p)
	}
	return pools, left
}

// reasonUnusable says why no template can have the pool, or is empty.
func (p *pool) reasonUnusable() string {
	nodes := map[string]bool{}
	for _, slice := range p.slices {
		if name := slice.Spec.NodeName; name != nil {
			nodes[*name] = true
		}
	}
	switch want := p.slices[0].Spec.Pool.ResourceSliceCount; {
	case len(nodes) > 1:
		return "several nodes have it: " + strings.Join(slices.Sorted(maps.Keys(nodes)), ", ")
	case int64(len(p.slices)) != want:
		return fmt.Sprintf("it has %d of %d slices", len(p.slices), want)
	case len(p.listDevices()) == 0:
		return "it has no device"
	}
	return ""
}

// member is a node with the pools of a driver on it.
type member struct {
	node  *corev1.Node
	pools []*pool
}

// marker stands for the name of the node.
const marker = "\x00"

// withoutNodeName puts the marker in place of the node's name.
func (m *member) withoutNodeName(text string) string {
	return strings.ReplaceAll(text, m.node.Name, marker)
}

// encodeShape encodes what all nodes with one template must have in common: everything but the values of
// attributes.
func (m *member) encodeShape() (string, error) {
	var text strings.Builder
	for _, p := range m.pools {
		name := m.withoutNodeName(p.name)
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
				shape, err := encodeDeviceShape(device)
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&text, "%s %s %s\n", device.Name, shape, namesIn(device))
			}
		}
	}
	return text.String(), nil
}

// namesIn lists the names that a device refers to.
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

// encodeDeviceShape encodes everything of a device but its name, the names of counter sets and nodes, and the
// values of its attributes.
func encodeDeviceShape(device *resourcev1.Device) (string, error) {
	bare := *device
	bare.Name, bare.Attributes = "", nil
	if bare.NodeName != nil {
		bare.NodeName = new("")
	}
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
		typ, values := attributeValues(device.Attributes[name])
		fmt.Fprintf(&text, " %s:%s:%d", name, typ, len(values))
	}
	return text.String(), nil
}
