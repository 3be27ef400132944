package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// installationOf is the installation whose writes are shown. A sidecar names itself after where it runs,
// which this command does not know, so the name is read from the records on slices. It is
// preview.AnyInstallation if they have several names, and empty without any record.
func (c *command) installationOf(existing []*resourcev1.ResourceSlice, nodes []*corev1.Node) installation.ID {
	if c.installation != "" {
		return installation.ID(c.installation)
	}
	selected := map[string]bool{}
	for _, node := range nodes {
		selected[node.Name] = true
	}
	all, ofNodes, bySelection := map[installation.ID]bool{}, map[installation.ID]bool{}, map[installation.ID]bool{}
	for _, slice := range existing {
		id := installation.Of(slice)
		if id == "" || slice.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByValue {
			continue
		}
		all[id] = true
		if slice.Spec.NodeName != nil && selected[*slice.Spec.NodeName] {
			ofNodes[id] = true
		}
		if actsFor(id, c.managed.Identity()) {
			bySelection[id] = true
		}
	}
	switch {
	case len(all) == 0:
		return ""
	case len(ofNodes) == 1:
		return slices.Collect(maps.Keys(ofNodes))[0]
	case len(bySelection) == 1:
		return slices.Collect(maps.Keys(bySelection))[0]
	}
	var names []string
	for id := range all {
		names = append(names, fmt.Sprintf("%q", id))
	}
	slices.Sort(names)
	c.streams.Tell("pools that nodes share are left alone where they are recorded to an installation of kwok-dra: give --installation to say which one is meant, of %s\n", strings.Join(names, ", "))
	return preview.AnyInstallation
}

// actsFor reports whether installation.New made an ID for these nodes.
func actsFor(id installation.ID, nodes string) bool {
	lease, _, _ := strings.Cut(string(id), " ")
	namespace, name, isLease := strings.Cut(lease, "/")
	return isLease && id == installation.New(types.NamespacedName{Namespace: namespace, Name: name}, true, nodes)
}
