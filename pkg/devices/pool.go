package devices

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Pool is a resource pool that should exist on a node.
type Pool struct {
	// Driver and Name identify the pool in the cluster.
	Driver, Name string
	// Templates are the templates that make the pool, in the order of their names.
	Templates []*Template
	// Slices are the devices, split as they are to be published.
	Slices [][]resourcev1.Device
}

// ForDriver picks the templates that count on a node: per driver those that
// select the node and have the highest priority, in the order of their names.
func ForDriver(templates []*Template, node *corev1.Node) map[string][]*Template {
	byDriver := map[string][]*Template{}
	for _, t := range templates {
		if !t.Selects(node) {
			continue
		}
		chosen := byDriver[t.Driver]
		if len(chosen) > 0 && t.Priority < chosen[0].Priority {
			continue
		}
		if len(chosen) > 0 && t.Priority > chosen[0].Priority {
			chosen = nil
		}
		byDriver[t.Driver] = append(chosen, t)
	}
	for _, chosen := range byDriver {
		slices.SortFunc(chosen, func(a, b *Template) int { return cmp.Compare(a.Name, b.Name) })
	}
	return byDriver
}

// Pools makes a driver's pools on a node from the templates that ForDriver
// chose. Templates with the same pool name form one pool, their devices in the
// order of the templates' names. Two devices of one name are an error.
func Pools(templates []*Template, node *lifecycle.Object) ([]Pool, error) {
	var pools []*building
	for _, t := range templates {
		name, devices, err := t.render(node)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(pools, func(b *building) bool { return b.pool.Name == name })
		if i < 0 {
			i = len(pools)
			pools = append(pools, &building{pool: Pool{Driver: t.Driver, Name: name}, owners: map[string]string{}})
		}
		if err := pools[i].add(t, devices); err != nil {
			return nil, err
		}
	}
	finished := make([]Pool, len(pools))
	for i, b := range pools {
		b.pool.Slices = split(b.devices)
		finished[i] = b.pool
	}
	return finished, nil
}

// building is a pool to which templates are still added.
type building struct {
	pool    Pool
	devices []resourcev1.Device
	// owners maps the names of devices to the templates that they are from.
	owners map[string]string
}

func (b *building) add(t *Template, devices []resourcev1.Device) error {
	for i := range devices {
		name := devices[i].Name
		if other, taken := b.owners[name]; taken {
			return fmt.Errorf("templates %s and %s both have the device %s in pool %s of driver %s: rename one, or set poolName or priority",
				other, t.Name, name, b.pool.Name, t.Driver)
		}
		b.owners[name] = t.Name
	}
	b.pool.Templates = append(b.pool.Templates, t)
	b.devices = append(b.devices, devices...)
	return nil
}

// split cuts the devices into the fewest slices within the API server's limits:
// 128 devices, or 64 where a device of the slice has taints.
func split(devices []resourcev1.Device) [][]resourcev1.Device {
	limit := resourcev1.ResourceSliceMaxDevices
	if slices.ContainsFunc(devices, hasAdvancedFeatures) {
		limit = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	return slices.Collect(slices.Chunk(devices, limit))
}

func hasAdvancedFeatures(device resourcev1.Device) bool {
	return len(device.Taints) > 0
}

// TemplateNames names the templates of the pool.
func (p *Pool) TemplateNames() []string {
	names := make([]string, len(p.Templates))
	for i, t := range p.Templates {
		names[i] = t.Name
	}
	return names
}
