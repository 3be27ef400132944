package observe

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Nodes are the nodes that the selection lists, fake or not.
type Nodes struct {
	cached.Informer[*Node]

	managed *lifecycle.ManagedNodes
}

// Node is what the cache keeps of a Node: all of it but heartbeats. Encoded it takes a quarter of the memory, and shows
// at once whether an update is a change.
type Node struct {
	cached.Object[corev1.Node, *corev1.Node]
	// IsFake says that kwok manages the node.
	IsFake bool
}

func (n *Nodes) observeNode(node *corev1.Node) *Node {
	observed := &Node{IsFake: n.managed.Matches(node)}
	lifecycle.Slim(node)
	before := ""
	if last := n.Informer.Get(node.Name); last != nil {
		before = last.Encoded
	}
	observed.Object = cached.Keep(node, before)
	return observed
}

// Handle calls changed with the name of each node that exists at the start, and of each that is added, changed or
// deleted. Old is nil for a new node, now for a deleted one. A heartbeat is no change. Call it before Run.
func (n *Nodes) Handle(changed func(name string, old, now *Node)) {
	n.Informer.Handle(cache.TypedResourceEventHandlerFuncs[*Node]{
		AddFunc: func(now *Node) { changed(now.Name, nil, now) },
		UpdateFunc: func(old, now *Node) {
			if old.Encoded != now.Encoded {
				changed(now.Name, old, now)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*Node]) {
			changed(deleted.GetObjectName().Name, deleted.OptionalObj, nil)
		},
	})
}

// Get returns the node, or nil if it does not exist or is not fake.
func (n *Nodes) Get(name string) *corev1.Node {
	if node := n.Informer.Get(name); node != nil && node.IsFake {
		return node.Decode()
	}
	return nil
}

// Has reports whether Get returns a node. It costs less, since it decodes nothing.
func (n *Nodes) Has(name string) bool {
	node := n.Informer.Get(name)
	return node != nil && node.IsFake
}

// Labels iterates over the fake nodes with their labels. It decodes each node.
func (n *Nodes) Labels(yield func(node string, labels map[string]string) bool) {
	for node := range n.All() {
		if node.IsFake && !yield(node.Name, node.Decode().Labels) {
			return
		}
	}
}

// Fake reports whether kwok manages the node.
func (n *Nodes) Fake(node *corev1.Node) bool {
	return n.managed.Matches(node)
}

// MayBeForeign reports whether a node may belong to another installation: only selected nodes are listed, and it is not
// one of them. It may also be gone, or have left the selection; whoever managed it knows.
func (n *Nodes) MayBeForeign(name string) bool {
	return n.managed.Hides(name) && n.Informer.Get(name) == nil
}
