package claims

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/claims/templates"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
)

func (c *Controller) addHandlers() {
	caches := c.observer.caches
	caches.Nodes.Handle(c.nodeChanged)
	caches.Pods.Handle(cache.TypedResourceEventHandlerDetailedFuncs[*observe.Pod]{
		AddFunc: func(pod *observe.Pod, isInInitialList bool) {
			if !pod.HasClaims() {
				return
			}
			if !isInInitialList {
				c.observer.states.bound(observe.Key(pod), pod.UID, time.Now())
			}
			c.podChanged(pod)
		},
		UpdateFunc: func(_, pod *observe.Pod) {
			if pod.HasClaims() {
				c.podChanged(pod)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observe.Pod]) {
			c.ledger.changes.Add(1)
			c.pods.loop.Add(types.NamespacedName(deleted.GetObjectName()))
			if pod := deleted.OptionalObj; pod != nil {
				c.enqueueClaims(pod)
			}
		},
	})
	caches.Claims.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Claim]{
		AddFunc: func(claim *observe.Claim) {
			c.claimChanged(claim)
			c.enqueueUsers(claim)
		},
		UpdateFunc: func(old, claim *observe.Claim) {
			c.claimChanged(claim)
			if old.Allocated != claim.Allocated || old.Node != claim.Node {
				c.enqueueUsers(claim)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observe.Claim]) {
			c.ledger.changes.Add(1)
			if deleted.OptionalObj != nil {
				c.observer.states.forgetClaim(deleted.OptionalObj.UID)
			}
		},
	})
}

// podChanged queues a Pod, and its claims where it no longer uses them.
func (c *Controller) podChanged(pod *observe.Pod) {
	c.ledger.changes.Add(1)
	c.pods.loop.Add(observe.Key(pod))
	if pod.Terminal {
		c.enqueueClaims(pod)
	}
}

// claimChanged queues a claim that there may be something to do about.
func (c *Controller) claimChanged(claim *observe.Claim) {
	c.ledger.changes.Add(1)
	if claim.Ours {
		c.claims.loop.Add(observe.Key(claim))
	}
}

// enqueueUsers queues the Pods of a claim that comes or is allocated anew, since
// what is allocated decides which replica prepares it. The Pods may have been seen
// before it.
func (c *Controller) enqueueUsers(claim *observe.Claim) {
	for _, pod := range c.observer.caches.Pods.Using(observe.Key(claim)) {
		c.pods.loop.Add(observe.Key(pod))
	}
}

// nodeChanged queues the Pods of a node that comes or goes, or whose devices
// turn healthy or unhealthy.
func (c *Controller) nodeChanged(name string, old, now *observe.Node) {
	if old == nil || now == nil || !c.sameToPods(old.Decode(), now.Decode()) {
		c.enqueueNode(name)
	}
}

// sameToPods reports whether a change of a node matters to none of its Pods.
func (c *Controller) sameToPods(old, node *corev1.Node) bool {
	return old.UID == node.UID && c.observer.caches.Nodes.Fake(old) == c.observer.caches.Nodes.Fake(node) &&
		templates.PluginOf(old) == templates.PluginOf(node) &&
		old.Annotations[v1alpha1.DeviceTaintsAnnotation] == node.Annotations[v1alpha1.DeviceTaintsAnnotation]
}

func (c *Controller) enqueueClaims(pod *observe.Pod) {
	for _, key := range pod.Claims {
		c.claims.loop.Add(key)
	}
}

// enqueueAll queues everything, since the configuration has changed.
func (c *Controller) enqueueAll() {
	for pod := range c.observer.caches.Pods.All() {
		if pod.HasClaims() {
			c.podChanged(pod)
		}
	}
	for claim := range c.observer.caches.Claims.All() {
		c.claimChanged(claim)
	}
}

// take queues the Pods and claims of a node that this replica begins to act for,
// including claims that no Pod uses.
func (c *Controller) take(node string) {
	c.enqueueNode(node)
	for _, claim := range c.observer.caches.Claims.On(node) {
		c.claimChanged(claim)
	}
}

// enqueueNode queues the Pods of a node, and their claims.
func (c *Controller) enqueueNode(name string) {
	for _, pod := range c.observer.caches.Pods.On(name) {
		c.podChanged(pod)
		c.enqueueClaims(pod)
	}
}
