package lifecycle

import (
	"context"
	"fmt"
	"sync"

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
	informer coreinformers.NodeIndexInformer

	mu sync.Mutex
	// listed are the names of all nodes that have been listed.
	listed map[string]bool
}

// NewNodes makes the cache; Run fills it.
func NewNodes(client kubernetes.Interface, managed *ManagedNodes) *Nodes {
	n := &Nodes{
		managed:  managed,
		informer: coreinformers.NewTypedFilteredNodeInformer(client, 0, nil, managed.Tweak),
		listed:   map[string]bool{},
	}
	cached.MustTransform(n.informer, slimNode)
	return n
}

// slimNode is the transform of the informer.
func slimNode(object any) (any, error) {
	if node, is := object.(*corev1.Node); is {
		Slim(node)
	}
	return object, nil
}

// Slim drops what selectors and templates do not see: managedFields, and
// heartbeats, which would make every renewal a change.
func Slim(node *corev1.Node) {
	node.ManagedFields = nil
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
}

// Handle has f called with each node that comes, changes (old is what it was)
// or goes (node is nil). Call it before Run. The checker is done when f has been
// called for all nodes that were there at the start.
func (n *Nodes) Handle(f func(name string, old, node *corev1.Node)) (cache.DoneChecker, error) {
	handler, err := n.informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Node]{
		AddFunc: func(node *corev1.Node) {
			n.list(node.Name)
			f(node.Name, nil, node)
		},
		UpdateFunc: func(old, node *corev1.Node) { f(node.Name, old, node) },
		DeleteFunc: func(deleted cache.DeletedObject[*corev1.Node]) {
			f(deleted.GetObjectName().Name, deleted.OptionalObj, nil)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	return handler.HasSyncedChecker(), nil
}

func (n *Nodes) list(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listed[name] = true
}

// Run watches the nodes until ctx ends.
func (n *Nodes) Run(ctx context.Context) {
	n.informer.RunWithContext(ctx)
}

// Get returns the node, or nil where it does not exist or is not fake.
func (n *Nodes) Get(name string) *corev1.Node {
	object, exists, err := n.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	node := object.(*corev1.Node)
	if !n.Fake(node) {
		return nil
	}
	return node
}

// Fake tells whether kwok manages the node.
func (n *Nodes) Fake(node *corev1.Node) bool {
	return n.managed.Matches(node)
}

// Names lists all nodes in the cache, also those that are not fake.
func (n *Nodes) Names() []string {
	return n.informer.GetStore().ListKeys()
}

// Known tells whether a node that Get does not return is known to be gone or not
// fake. Where only some nodes are listed, those that never were are someone
// else's.
func (n *Nodes) Known(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.managed.Narrow() || n.listed[name]
}
