package devices

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Lookup finds the devices of a node. It is not safe for concurrent use.
type Lookup struct {
	// Node is the Node as templates see it.
	Node *lifecycle.Object
	// templates chooses those of the node by driver, once they are needed.
	templates func() map[string][]*Template
	taints    func() (Taints, error)
	// pools are those of each driver that was looked up. They have no devices.
	pools map[string][]Pool
}

// NewLookup makes a Lookup of the devices of a node that may be allocated. Those of drivers without a
// connection are among them, if the driver's name is known.
func (b *Bound) NewLookup(node *corev1.Node) *Lookup {
	templates := slices.Clone(b.Templates)
	for _, down := range b.Down {
		templates = append(templates, down.Template)
	}
	for _, t := range b.Absent {
		isNamed := func(other *Template) bool { return other.Name == t.Name }
		if !t.NamesDriver() && !slices.ContainsFunc(templates, isNamed) {
			templates = append(templates, t)
		}
	}
	object := lifecycle.NodeObject(node)
	return &Lookup{
		Node:      object,
		templates: sync.OnceValue(func() map[string][]*Template { return SelectForNode(templates, node).ByDriver }),
		taints:    sync.OnceValues(func() (Taints, error) { return TaintsOf(object) }),
		pools:     map[string][]Pool{},
	}
}

// Template finds the template that an allocated device is from.
func (l *Lookup) Template(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	templates := l.templates()[result.Driver]
	if len(templates) == 1 && templates[0].content.byName[result.Device] != nil {
		return templates[0], nil
	}
	return l.findTemplate(result)
}

// Device renders an allocated device as it is published.
func (l *Lookup) Device(result *resourcev1.DeviceRequestAllocationResult) (*resourcev1.Device, error) {
	t, err := l.findTemplate(result)
	if err != nil {
		return nil, err
	}
	taints, err := l.taints()
	if err != nil {
		return nil, err
	}
	device, err := t.content.byName[result.Device].renderDevice(t.newRenderer(l.Node))
	if err != nil {
		return nil, fmt.Errorf(cannotRender, t.Name, err)
	}
	pool := Pool{Driver: result.Driver, Devices: []resourcev1.Device{device}}
	return &pool.Devices[0], taints.addTo(&pool)
}

// findTemplate finds the template by the device and its pool.
func (l *Lookup) findTemplate(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	templates := l.templates()[result.Driver]
	pools, known := l.pools[result.Driver]
	if !known {
		var err error
		if pools, _, err = mergeDocuments(templates, l.Node); err != nil {
			return nil, err
		}
		l.pools[result.Driver] = pools
	}
	for _, pool := range pools {
		if t := pool.findTemplate(result.Device); t != nil && pool.Name == result.Pool {
			return t, nil
		}
	}
	for _, t := range templates {
		if t.SharedWith != nil && t.PoolName == result.Pool && t.content.byName[result.Device] != nil {
			return t, nil
		}
	}
	// Drivers answer so for a device that they do not have.
	return nil, fmt.Errorf("requested device is not allocatable: %s in pool %s of driver %s", result.Device, result.Pool, result.Driver)
}
