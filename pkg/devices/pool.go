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
	// Devices are the devices in the order of the templates.
	Devices []resourcev1.Device

	// owners maps the names of devices to the templates that they are from.
	owners map[string]string
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
// order of the templates' names. Two devices of one name are an error. The taints
// of the node's annotation are on the devices.
func Pools(templates []*Template, node *lifecycle.Object) ([]Pool, error) {
	taints, err := TaintsOf(node)
	if err != nil {
		return nil, err
	}
	var pools []Pool
	for _, t := range templates {
		name, devices, err := t.render(node)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == name })
		if i < 0 {
			i = len(pools)
			pools = append(pools, Pool{Driver: t.Driver, Name: name, owners: map[string]string{}})
		}
		if err := pools[i].add(t, devices); err != nil {
			return nil, err
		}
	}
	for i := range pools {
		if err := taints.addTo(&pools[i]); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

func (p *Pool) add(t *Template, devices []resourcev1.Device) error {
	for i := range devices {
		name := devices[i].Name
		if other, taken := p.owners[name]; taken {
			return fmt.Errorf("templates %s and %s both have the device %s in pool %s of driver %s: rename one, or set poolName or priority",
				other, t.Name, name, p.Name, t.Driver)
		}
		p.owners[name] = t.Name
	}
	p.Templates = append(p.Templates, t)
	p.Devices = append(p.Devices, devices...)
	return nil
}

// Slices splits the devices as they are to be published: into the fewest slices
// within the API server's limits, 128 devices, or 64 where one has taints.
func (p *Pool) Slices() [][]resourcev1.Device {
	limit := resourcev1.ResourceSliceMaxDevices
	if slices.ContainsFunc(p.Devices, hasAdvancedFeatures) {
		limit = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	return slices.Collect(slices.Chunk(p.Devices, limit))
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
