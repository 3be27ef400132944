package plan

import "github.com/kwok-dra/kwok-dra/pkg/devices"

// Key is what is planned at a time: the slices of a node, or those of a pool that
// nodes share.
type Key struct {
	// Node is the name of the node, or empty.
	Node string
	// Driver and Pool are empty where there is a node.
	Driver, Pool string
}

// NodeKey is the key of a node.
func NodeKey(name string) Key { return Key{Node: name} }

// SharedKey is the key of the pool of a template whose pool nodes share.
func SharedKey(t *devices.Template) Key { return Key{Driver: t.Driver, Pool: t.SharedPool()} }

// Shared reports whether it is the key of a pool that nodes share.
func (k Key) Shared() bool { return k.Node == "" }

// String is how logs and errors name it.
func (k Key) String() string {
	if k.Shared() {
		return "pool " + k.Pool + " of driver " + k.Driver
	}
	return "node " + k.Node
}
