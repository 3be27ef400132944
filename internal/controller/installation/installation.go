package installation

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// ID identifies an installation: all its replicas, across restarts and upgrades. The zero value identifies none: it
// records nothing, and no object belongs to another installation.
type ID string

// New returns the ID of an installation without a name: its leader's Lease, even if there is no leader election.
// Outside the cluster, the Lease has the kubeconfig's namespace. Two installations in one namespace differ in the nodes
// that they act for.
func New(lease types.NamespacedName, inCluster bool, nodes string) ID {
	id := ID(lease.String())
	if !inCluster {
		id = "outside/" + id
	}
	if nodes != "" {
		id += ID(" (" + nodes + ")")
	}
	return id
}

// Of returns the installation that an object is recorded to, or none.
func Of(object metav1.Object) ID {
	return ID(object.GetAnnotations()[v1alpha1.InstallationAnnotation])
}

// Record records an object to the installation.
func (id ID) Record(object *metav1.ObjectMeta) {
	if id != "" {
		metav1.SetMetaDataAnnotation(object, v1alpha1.InstallationAnnotation, string(id))
	}
}

// IsAnother reports whether the recorded installation is another one. An object without a record, which a version
// before records made, belongs to the first installation that writes it.
func (id ID) IsAnother(recorded ID) bool {
	return id != "" && recorded != "" && recorded != id
}

// Another returns the other installation that owns objects that belong together, or none. If two installations have
// made some of them at the same time, the first by name keeps its own: both see the same records, so the other one
// gives up.
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
	// Object names the object, and Resource is its name for kubectl.
	Object, Resource string
	Owner, As        ID
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s belongs to installation %q of kwok-dra, and installation %q leaves it alone: remove one of the two, or rename it; if that installation is gone, take it over with: kubectl annotate %s %s-",
		e.Object, e.Owner, e.As, e.Resource, v1alpha1.InstallationAnnotation)
}
