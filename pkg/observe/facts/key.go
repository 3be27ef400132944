package facts

// SlicesKey is what is planned at a time: the slices of a node, or those of a pool that
// nodes share.
type SlicesKey struct {
	// Node is the name of the node, or empty.
	Node string
	// Driver and Pool are empty where there is a node.
	Driver, Pool string
}

// NodeKey is the key of a node.
func NodeKey(name string) SlicesKey { return SlicesKey{Node: name} }

// Shared reports whether it is the key of a pool that nodes share.
func (k SlicesKey) Shared() bool { return k.Node == "" }

// String is how logs and errors name it.
func (k SlicesKey) String() string {
	if k.Shared() {
		return "pool " + k.Pool + " of driver " + k.Driver
	}
	return "node " + k.Node
}
