package claims

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func (c *Controller) addHandlers() {
	caches := c.observer.Caches
	caches.Nodes.Handle(func(name string, old, now *observe.Node) {
		if old != nil && now != nil {
			nodes, before, after := caches.Nodes, old.Decode(), now.Decode()
			if before.UID == after.UID && nodes.Fake(before) == nodes.Fake(after) && lifecycle.PluginOf(before) == lifecycle.PluginOf(after) &&
				before.Annotations[v1alpha1.DeviceTaintsAnnotation] == after.Annotations[v1alpha1.DeviceTaintsAnnotation] {
				return // the health of devices is the same
			}
		}
		c.enqueueNodeAndClaims(name)
	})
	c.observer.DriverPods.Handle(c.enqueueNode, c.enqueueAll)
	caches.Pods.Handle(cache.TypedResourceEventHandlerDetailedFuncs[*observe.Pod]{
		AddFunc: func(pod *observe.Pod, isInInitialList bool) { c.podChanged(pod, !isInInitialList) },
		UpdateFunc: func(old, pod *observe.Pod) {
			if cached.Older(pod.ResourceVersion, old.ResourceVersion) {
				c.observer.states.restoredAt.Store(time.Now().UnixNano())
			}
			c.podChanged(pod, false)
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observe.Pod]) {
			key := types.NamespacedName(deleted.GetObjectName())
			c.observer.states.changes.Add(1)
			c.observer.states.bound.Delete(key)
			c.pods.loop.Add(key)
			if pod := deleted.OptionalObj; pod != nil {
				c.enqueueClaims(pod)
			}
		},
	})
	caches.Claims.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Claim]{
		AddFunc: func(claim *observe.Claim) { c.claimChanged(claim, true) },
		UpdateFunc: func(old, claim *observe.Claim) {
			c.claimChanged(claim, old.Allocated != claim.Allocated || old.Node != claim.Node)
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observe.Claim]) {
			c.observer.states.changes.Add(1)
			c.observer.states.claimWrites.End(types.NamespacedName(deleted.GetObjectName()))
			if deleted.OptionalObj != nil {
				c.observer.states.claims.Delete(deleted.OptionalObj.UID)
			}
		},
	})
}

// podChanged queues a Pod with claims, and its claims if it has ended. The event may be that the Pod was bound.
func (c *Controller) podChanged(pod *observe.Pod, isBound bool) {
	if !pod.HasClaims() {
		return
	}
	if isBound {
		c.observer.states.bound.Store(observe.Key(pod), boundPod{pod.UID, time.Now()})
	}
	c.observer.states.changes.Add(1)
	c.pods.loop.Add(observe.Key(pod))
	if pod.Terminal {
		c.enqueueClaims(pod)
	}
}

// claimChanged queues a claim whose entries kwok-dra may have to write. If it was created or allocated, its Pods are queued
// too: they may have been seen before the claim, and the allocation decides which replica prepares it.
func (c *Controller) claimChanged(claim *observe.Claim, isAllocated bool) {
	c.observer.states.changes.Add(1)
	if claim.Ours {
		c.claims.loop.Add(observe.Key(claim))
	}
	if isAllocated {
		for _, pod := range c.observer.Caches.Pods.Using(observe.Key(claim)) {
			c.pods.loop.Add(observe.Key(pod))
		}
	}
}

func (c *Controller) enqueueClaims(pod *observe.Pod) {
	for _, key := range pod.Claims {
		c.claims.loop.Add(key)
	}
}

// enqueueAll queues all Pods and claims, after a change of the configuration.
func (c *Controller) enqueueAll() {
	for pod := range c.observer.Caches.Pods.All() {
		c.podChanged(pod, false)
	}
	for claim := range c.observer.Caches.Claims.All() {
		c.claimChanged(claim, false)
	}
}

// enqueueNodeAndClaims queues the Pods of a node and all claims that are allocated on it, including those that no cached
// Pod uses. This replica may be starting to act for the node.
func (c *Controller) enqueueNodeAndClaims(node string) {
	c.enqueueNode(node)
	for _, claim := range c.observer.Caches.Claims.On(node) {
		c.claimChanged(claim, false)
	}
}

// enqueueNode queues the Pods of a node, and their claims.
func (c *Controller) enqueueNode(name string) {
	for _, pod := range c.observer.Caches.Pods.On(name) {
		c.podChanged(pod, false)
		c.enqueueClaims(pod)
	}
}
