package observe

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Caches has one cache for each kind.
type Caches struct {
	Nodes  *Nodes
	Pods   *Pods
	Claims *Claims
	Slices *Slices
}

// New makes the caches; Run fills them.
func New(client kubernetes.Interface, managed *lifecycle.ManagedNodes) *Caches {
	return &Caches{Nodes: newNodes(client, managed), Pods: newPods(client), Claims: newClaims(client), Slices: newSlices(client)}
}

// Run watches until ctx ends.
func (c *Caches) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){c.Nodes.Run, c.Pods.Run, c.Claims.Run, c.Slices.Run} {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
}

// Synced is done when all caches are complete and each handler has been called with all objects
// that existed at the start. Call it when all handlers are added.
func (c *Caches) Synced() []cache.DoneChecker {
	return slices.Concat(c.Nodes.Synced(), c.Pods.Synced(), c.Claims.Synced(), c.Slices.Synced())
}

// HasConsumer reports whether a claim on the node is reserved for a running Pod with that UID.
// The Pod need not name the claim.
func (c *Caches) HasConsumer(node string, uid types.UID) bool {
	return slices.ContainsFunc(c.Claims.On(node), func(claim *Claim) bool {
		return slices.ContainsFunc(c.Pods.Consumers(claim.Decode()), func(pod *corev1.Pod) bool { return pod.UID == uid })
	})
}

// named is an object of the API, or what a cache keeps of it.
type named interface {
	GetNamespace() string
	GetName() string
}

// Key is the namespace and the name of an object.
func Key(object named) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
