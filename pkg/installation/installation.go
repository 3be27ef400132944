// Package installation says which installation of kwok-dra an object belongs to.
//
// Several installations can act for one cluster, each for nodes of its own. A label
// that all of them write says which program has made an object, and not which of them
// may change it. So each records itself on what it makes, and leaves alone what is
// recorded to another one.
package installation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// ID identifies an installation: all its replicas, over restarts and upgrades. The zero
// value is none: it records nothing, and nothing is another's to it.
type ID string

// Unknown stands for an installation that may be any. What is recorded to one, whichever it
// is, is another's to it.
const Unknown ID = "unknown"

// New is the ID of an installation that has no name. Where it runs is the Lease of its
// leader, whether there is one or not, and outside the cluster the kubeconfig's
// namespace. Two in one namespace differ in the nodes that they act for.
func New(lease types.NamespacedName, inCluster bool, nodes string) ID {
	id := ID(lease.String())
	if !inCluster {
		id = "outside/" + id
	}
	return id + selectionSuffix(nodes)
}

// selectionSuffix is how an ID without a name says which nodes it acts for.
func selectionSuffix(nodes string) ID {
	if nodes == "" {
		return ""
	}
	return ID(" (" + nodes + ")")
}

// ActsFor reports whether the ID is one that New makes for the nodes.
func (id ID) ActsFor(nodes string) bool {
	lease, isSelection := strings.CutSuffix(string(id), string(selectionSuffix(nodes)))
	return isSelection && strings.Contains(lease, "/") && !strings.Contains(lease, " ")
}

// Of is the installation that an object is recorded to, or none.
func Of(object metav1.Object) ID {
	return ID(object.GetAnnotations()[v1alpha1.InstallationAnnotation])
}

// Record records an object to the installation.
func (id ID) Record(object *metav1.ObjectMeta) {
	if id != "" {
		metav1.SetMetaDataAnnotation(object, v1alpha1.InstallationAnnotation, string(id))
	}
}

// IsAnother reports whether what is recorded is another installation. An object without
// a record, which versions before records have made, belongs to whoever writes it first.
func (id ID) IsAnother(recorded ID) bool {
	return id != "" && recorded != "" && recorded != id
}

// Another is the installation, other than this one, to which objects that belong
// together are recorded, or none. If two have made some of them at the same time, the
// first by name keeps its own: both see the same, so the other one gives up.
func (id ID) Another(recorded []ID) ID {
	others := slices.DeleteFunc(slices.Clone(recorded), func(r ID) bool { return !id.IsAnother(r) })
	if len(others) == 0 {
		return ""
	}
	first := slices.MinFunc(others, cmp.Compare)
	if slices.Contains(recorded, id) && id < first {
		return ""
	}
	return first
}

// OwnedError says that an object belongs to another installation.
type OwnedError struct {
	// Object is the object, and Resource what kubectl finds it by.
	Object, Resource string
	Owner, As        ID
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s belongs to installation %q of kwok-dra, and installation %q leaves it alone: remove one of the two, or rename it; if that installation is gone, take it over with: kubectl annotate %s %s-",
		e.Object, e.Owner, e.As, e.Resource, v1alpha1.InstallationAnnotation)
}
