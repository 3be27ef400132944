package kubelet

import (
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/cdi"
	"github.com/kwok-dra/kwok-dra/pkg/containerview"
)

// Shared is the directory with the folders of nodes as their paths have it, or "".
func (k *Kubelets) Shared() string {
	if !k.Enabled() {
		return ""
	}
	resolved, err := filepath.EvalSymlinks(k.directory())
	if err != nil {
		return "" // no node has a folder yet
	}
	return resolved
}

// View answers for the drivers of a node: for real ones by their CDI specs, and for others as it is
// told. It returns nil as long as it is not known what is prepared.
func (k *Kubelets) View(fake *corev1.Node, others containerview.Drivers) containerview.Drivers {
	n := k.node(fake)
	switch {
	case n == nil && k.Enabled() && k.Owner.Acts(fake.Name, true):
		return nil
	case n == nil:
		return others
	}
	return &cdi.Drivers{
		Drivers:  others,
		Returned: n.claims.CDIDevices,
		Specs:    sync.OnceValues(func() (cdi.Specs, error) { return cdi.ReadIn(n.root.Path, n.root.CDI()) }),
		Host:     n.root.OnHost,
	}
}
