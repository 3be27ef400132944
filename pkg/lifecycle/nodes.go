package lifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// Nodes are the fake nodes, as the cache has them.
type Nodes struct {
	managed  *ManagedNodes
	informer cache.TypedSharedIndexInformer[*observedNode]
}

// NewNodes makes the cache; Run fills it.
func NewNodes(client kubernetes.Interface, managed *ManagedNodes) *Nodes {
	n := &Nodes{managed: managed}
	informer := coreinformers.NewFilteredNodeInformer(client, 0, nil, managed.Tweak)
	cached.MustTransform(informer, n.observe)
	n.informer = cache.NewTypedSharedIndexInformer[*observedNode](informer)
	return n
}

// observedNode is what the cache keeps of a Node: all of it but heartbeats,
// encoded, which takes a quarter of the memory and tells at once whether an
// update is a change.
type observedNode struct {
	cached.Object[corev1.Node, *corev1.Node]
	fake bool
}

// observe makes an observedNode of a Node. It is the transform of the informer,
// which may pass it its own result.
func (n *Nodes) observe(object any) (any, error) {
	node, is := object.(*corev1.Node)
	if !is {
		return object, nil
	}
	observed := &observedNode{fake: n.Fake(node)}
	Slim(node)
	var before cached.Encoded[corev1.Node, *corev1.Node]
	if known := n.observed(node.Name); known != nil {
		before = known.Encoded
	}
	var err error
	if observed.Object, err = cached.Keep(node, before); err != nil {
		return nil, fmt.Errorf("encode node %s: %w", node.Name, err)
	}
	return observed, nil
}

// Slim drops what selectors and templates do not see: managedFields, and
// heartbeats, which would make every renewal a change.
func Slim(node *corev1.Node) {
	node.ManagedFields = nil
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
}

// Update is what an event says about a node.
type Update struct {
	Name string
	// old and now are nil where the node was not, or is no longer, there.
	old, now *observedNode
}

// Both are the node before and after the update, or nil where it came or went.
func (u Update) Both() (old, now *corev1.Node) {
	if u.old == nil || u.now == nil {
		return nil, nil
	}
	return u.old.Decode(), u.now.Decode()
}

// Handle calls f with each node that is added, changed or deleted. A heartbeat is
// no change. Call it before Run. The checker is done when f has been called for
// all nodes that were there at the start.
func (n *Nodes) Handle(f func(Update)) (cache.DoneChecker, error) {
	handler, err := n.informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*observedNode]{
		AddFunc: func(node *observedNode) {
			f(Update{Name: node.Name, now: node})
		},
		UpdateFunc: func(old, node *observedNode) {
			if old.Encoded != node.Encoded {
				f(Update{Name: node.Name, old: old, now: node})
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observedNode]) {
			f(Update{Name: deleted.GetObjectName().Name, old: deleted.OptionalObj})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	return handler.HasSyncedChecker(), nil
}

// Run watches the nodes until ctx ends.
func (n *Nodes) Run(ctx context.Context) {
	n.informer.RunWithContext(ctx)
}

// Get returns the node, or nil where it does not exist or is not fake.
func (n *Nodes) Get(name string) *corev1.Node {
	if node := n.get(name); node != nil {
		return node.Decode()
	}
	return nil
}

// Has reports whether Get returns a node, which costs less than to get it.
func (n *Nodes) Has(name string) bool {
	return n.get(name) != nil
}

func (n *Nodes) get(name string) *observedNode {
	if node := n.observed(name); node != nil && node.fake {
		return node
	}
	return nil
}

// observed returns what the cache has of a node, fake or not, or nil.
func (n *Nodes) observed(name string) *observedNode {
	return cached.Get[observedNode](n.informer.GetStore(), name)
}

// Fake reports whether kwok manages the node.
func (n *Nodes) Fake(node *corev1.Node) bool {
	return n.managed.Matches(node)
}

// Names lists all nodes in the cache, also those that are not fake.
func (n *Nodes) Names() []string {
	return n.informer.GetStore().ListKeys()
}

// Others reports whether a node may be someone else's: only some nodes are listed,
// and it is not among them. It may as well be gone, or have left the selection; who
// has acted for it knows that.
func (n *Nodes) Others(name string) bool {
	return n.managed.Narrow() && n.observed(name) == nil
}
