package observe

import (
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Nodes are the nodes, fake or not, as the cache has them.
type Nodes struct {
	cached.Informer[*Node]

	managed *lifecycle.ManagedNodes
}

func newNodes(client kubernetes.Interface, managed *lifecycle.ManagedNodes) *Nodes {
	n := &Nodes{managed: managed}
	shared := coreinformers.NewFilteredNodeInformer(client, 0, nil, managed.Tweak)
	n.Informer = cached.NewInformer[*Node](shared, cached.Transform(n.observe))
	return n
}

// Node is what the cache keeps of a Node: all of it but heartbeats, encoded, which
// takes a quarter of the memory and tells at once whether an update is a change.
type Node struct {
	cached.Object[corev1.Node, *corev1.Node]
	fake bool
}

func (n *Nodes) observe(node *corev1.Node) *Node {
	observed := &Node{fake: n.Fake(node)}
	lifecycle.Slim(node)
	before := ""
	if known := n.Informer.Get(node.Name); known != nil {
		before = known.Encoded
	}
	observed.Object = cached.Keep(node, before)
	return observed
}

// Handle calls changed with the name of each node that is there, and that is added,
// changed or deleted. Old and now are nil where it was not, or is no longer, there. A
// heartbeat is no change. Call it before Run.
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

// Get returns the node, or nil where it does not exist or is not fake.
func (n *Nodes) Get(name string) *corev1.Node {
	if known := n.Informer.Get(name); known != nil && known.fake {
		return known.Decode()
	}
	return nil
}

// Has reports whether Get returns a node, which costs less than to get it.
func (n *Nodes) Has(name string) bool {
	known := n.Informer.Get(name)
	return known != nil && known.fake
}

// Labels are the fake nodes with their labels. Each node is decoded for that.
func (n *Nodes) Labels(yield func(node string, labels map[string]string) bool) {
	for known := range n.All() {
		if known.fake && !yield(known.Name, known.Decode().Labels) {
			return
		}
	}
}

// Fake reports whether kwok manages the node.
func (n *Nodes) Fake(node *corev1.Node) bool {
	return n.managed.Matches(node)
}

// Others reports whether a node may be someone else's: only some nodes are listed,
// and it is not among them. It may as well be gone, or have left the selection; who
// has acted for it knows that.
func (n *Nodes) Others(name string) bool {
	return n.managed.Hides(name) && n.Informer.Get(name) == nil
}
