package kubelet

import (
	"fmt"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/cdi"
)

// Shared returns the directory of the nodes' folders without symbolic links, or "".
func (k *Kubelets) Shared() string {
	if !k.Enabled() {
		return ""
	}
	resolved, err := filepath.EvalSymlinks(k.pluginsDirectory())
	if err != nil {
		return "" // no node has a folder yet
	}
	return resolved
}

// View returns what the drivers of a node inject: real drivers by their CDI specs, and all others as
// others says. It returns nil until the node's checkpoint has been read.
func (k *Kubelets) View(fake *corev1.Node, others containerview.Drivers) containerview.Drivers {
	n, failed := k.runningNode(fake.Name), k.failureOf(fake.Name)
	switch {
	case n != nil:
	case failed != nil:
		return &unreadDrivers{others, k.Config.Current(), failed}
	case k.Enabled() && k.Owner.Acts(fake.Name, true):
		return nil
	default:
		return others
	}
	return &cdi.Drivers{
		Drivers:  others,
		Returned: n.claims.CDIDevices,
		Specs:    sync.OnceValues(func() (cdi.Specs, error) { return cdi.Read(n.root.Path, n.root.CDI()) }),
		Host:     n.root.OnHost,
	}
}

// unreadDrivers stands for the drivers of a node that cannot serve real ones. What real drivers have
// returned there is unknown.
type unreadDrivers struct {
	containerview.Drivers
	set *config.Set
	err error
}

// Injections implements containerview.Drivers. It fails for devices of real drivers.
func (d *unreadDrivers) Injections(pod *corev1.Pod, claim *resourcev1.ResourceClaim, results []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	for _, result := range results {
		if d.set == nil || !d.set.HasDriver(result.Driver) {
			return nil, fmt.Errorf("device %s of driver %s: %w", result.Device, result.Driver, d.err)
		}
	}
	return d.Drivers.Injections(pod, claim, results)
}
