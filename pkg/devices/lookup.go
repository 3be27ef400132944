package devices

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Lookup finds the devices of a node. It is for one worker.
type Lookup struct {
	node *lifecycle.Object
	// templates chooses those of the node, which many users of a Lookup never need.
	templates func() map[string][]*Template
	taints    func() (Taints, error)
	pools     map[string][]Pool
}

// NewLookup makes a Lookup of the devices that the templates give a node.
func NewLookup(templates []*Template, node *corev1.Node) *Lookup {
	object := lifecycle.NodeObject(node)
	return &Lookup{
		node:      object,
		templates: sync.OnceValue(func() map[string][]*Template { return ForDriver(templates, node) }),
		taints:    sync.OnceValues(func() (Taints, error) { return TaintsOf(object) }),
		pools:     map[string][]Pool{},
	}
}

// Template finds the template that an allocated device is from.
func (l *Lookup) Template(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	templates := l.templates()[result.Driver]
	if len(templates) == 1 && templates[0].has(result.Device) {
		return templates[0], nil
	}
	return l.owner(result)
}

// Device renders an allocated device as it is published.
func (l *Lookup) Device(result *resourcev1.DeviceRequestAllocationResult) (*resourcev1.Device, error) {
	t, err := l.owner(result)
	if err != nil {
		return nil, err
	}
	taints, err := l.taints()
	if err != nil {
		return nil, err
	}
	alone := Pool{Driver: result.Driver, Devices: make([]resourcev1.Device, 1)}
	err = t.within(l.node, func(v *view) error {
		alone.Devices[0], err = t.renderDevice(t.positions[result.Device], v)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &alone.Devices[0], taints.addTo(&alone)
}

// Node is the node as templates see it.
func (l *Lookup) Node() *lifecycle.Object {
	return l.node
}

// owner finds the template by the pool as well.
func (l *Lookup) owner(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	pools, known := l.pools[result.Driver]
	if !known {
		var err error
		if pools, err = l.unrendered(l.templates()[result.Driver]); err != nil {
			return nil, err
		}
		l.pools[result.Driver] = pools
	}
	i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == result.Pool && p.owner(result.Device) != nil })
	if i < 0 {
		return nil, notAllocatable(result)
	}
	return pools[i].owner(result.Device), nil
}

// unrendered are the pools of the node, and those that it shares, without devices.
func (l *Lookup) unrendered(templates []*Template) ([]Pool, error) {
	pools, _, err := unrendered(templates, l.node)
	for _, t := range templates {
		if t.SharedPool() != "" {
			pools = append(pools, Pool{Name: t.SharedPool(), Templates: []*Template{t}})
		}
	}
	return pools, err
}

// notAllocatable is the answer of drivers for a device that they do not have.
func notAllocatable(result *resourcev1.DeviceRequestAllocationResult) error {
	return fmt.Errorf("requested device is not allocatable: %s in pool %s of driver %s", result.Device, result.Pool, result.Driver)
}

// has reports whether a device of that name is made from the template.
func (t *Template) has(device string) bool {
	_, has := t.positions[device]
	return has
}
