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
	pools     map[string][]Pool
}

// NewLookup makes a Lookup of the devices that the templates give a node.
func NewLookup(templates []*Template, node *corev1.Node) *Lookup {
	return &Lookup{
		node:      lifecycle.NodeObject(node),
		templates: sync.OnceValue(func() map[string][]*Template { return ForDriver(templates, node) }),
		pools:     map[string][]Pool{},
	}
}

// Template finds the template that an allocated device is from. Only where
// several templates could be the one are devices rendered.
func (l *Lookup) Template(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	templates := l.templates()[result.Driver]
	if len(templates) == 1 && templates[0].has(result.Device) {
		return templates[0], nil
	}
	pool, err := l.pool(result)
	if err != nil {
		return nil, err
	}
	owner := slices.IndexFunc(pool.Templates, func(t *Template) bool { return t.Name == pool.owners[result.Device] })
	if owner < 0 {
		return nil, notAllocatable(result)
	}
	return pool.Templates[owner], nil
}

// Device finds an allocated device as it is published.
func (l *Lookup) Device(result *resourcev1.DeviceRequestAllocationResult) (*resourcev1.Device, error) {
	pool, err := l.pool(result)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(pool.Devices, func(d resourcev1.Device) bool { return d.Name == result.Device })
	if i < 0 {
		return nil, notAllocatable(result)
	}
	return &pool.Devices[i], nil
}

// Node is the node as templates see it.
func (l *Lookup) Node() *lifecycle.Object {
	return l.node
}

func (l *Lookup) pool(result *resourcev1.DeviceRequestAllocationResult) (*Pool, error) {
	pools, rendered := l.pools[result.Driver]
	if !rendered {
		var err error
		if pools, err = l.render(l.templates()[result.Driver]); err != nil {
			return nil, err
		}
		l.pools[result.Driver] = pools
	}
	i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == result.Pool })
	if i < 0 {
		return nil, notAllocatable(result)
	}
	return &pools[i], nil
}

// render makes the pools of the node, and those that it shares.
func (l *Lookup) render(templates []*Template) ([]Pool, error) {
	pools, _, err := Standing(templates, l.node)
	for _, t := range templates {
		if err != nil || t.SharedPool() == "" {
			continue
		}
		var shared *Pool
		if shared, err = t.NewSharedPool(); err == nil {
			pools = append(pools, *shared)
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
	return t.names[device]
}
