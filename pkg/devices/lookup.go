package devices

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Lookup finds the devices of a node. It is for one worker.
type Lookup struct {
	// Node is the node as templates see it.
	Node *lifecycle.Object
	// templates chooses those of the node, which many users of a Lookup never need.
	templates func() map[string][]*Template
	taints    func() (Taints, error)
	pools     map[string][]Pool
}

// NewLookup makes a Lookup of the devices that the templates give a node.
func NewLookup(templates []*Template, node *corev1.Node) *Lookup {
	object := lifecycle.NodeObject(node)
	return &Lookup{
		Node:      object,
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
	device, err := t.byName[result.Device].render(t.newRendering(l.Node))
	if err != nil {
		return nil, fmt.Errorf(cannotRender, t.Name, err)
	}
	alone := Pool{Driver: result.Driver, Devices: []resourcev1.Device{device}}
	return &alone.Devices[0], taints.addTo(&alone)
}

// owner finds the template by the pool as well.
func (l *Lookup) owner(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	templates := l.templates()[result.Driver]
	pools, known := l.pools[result.Driver]
	if !known {
		var err error
		if pools, _, err = unrendered(templates, l.Node); err != nil {
			return nil, err
		}
		l.pools[result.Driver] = pools
	}
	for _, pool := range pools {
		if t := pool.owner(result.Device); t != nil && pool.Name == result.Pool {
			return t, nil
		}
	}
	for _, t := range templates {
		if t.SharedWith != nil && t.PoolName == result.Pool && t.has(result.Device) {
			return t, nil
		}
	}
	// This is the answer of drivers for a device that they do not have.
	return nil, fmt.Errorf("requested device is not allocatable: %s in pool %s of driver %s", result.Device, result.Pool, result.Driver)
}
