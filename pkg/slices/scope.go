package slices

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// scope is what is reconciled at a time: the slices of a node, or those of a
// pool that nodes share.
type scope struct {
	// node is the name of the node, or empty.
	node string
	// driver and pool are empty where there is a node.
	driver, pool string
}

func (s scope) shared() bool { return s.node == "" }

// String is how logs and errors name the scope.
func (s scope) String() string {
	if s.shared() {
		return "pool " + s.pool + " of driver " + s.driver
	}
	return "node " + s.node
}

func nodeScope(name string) scope { return scope{node: name} }

// sharedScope is that of the pool of a template whose pool nodes share.
func sharedScope(t *devices.Template) scope { return scope{driver: t.Driver, pool: t.SharedPool()} }

// holder is what slices belong to: a node, or a template's object in the
// cluster, or nothing where the template is from a file.
type holder struct {
	// name is the readable part of the slices' names.
	name string
	uid  types.UID
	// owner makes the garbage collector delete what kwok-dra could not, as with real
	// drivers. It is nil for the pool of a file.
	owner *metav1.OwnerReference
}

func nodeHolder(node *corev1.Node) holder {
	return holder{name: node.Name, uid: node.UID, owner: &metav1.OwnerReference{
		APIVersion: "v1",
		Kind:       "Node",
		Name:       node.Name,
		UID:        node.UID,
		Controller: new(true),
	}}
}

func sharedHolder(pool *devices.Pool) holder {
	if pool.Owner == nil {
		return holder{name: pool.Name}
	}
	return holder{name: pool.Name, uid: pool.Owner.UID, owner: pool.Owner}
}

// owners are the owner references of the holder's slices.
func (h holder) owners() []metav1.OwnerReference {
	if h.owner == nil {
		return nil
	}
	return []metav1.OwnerReference{*h.owner}
}
