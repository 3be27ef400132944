package claims

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Controller prepares and unprepares the claims of Pods on fake nodes.
type Controller struct {
	observer *observer
	pods     *podReconciler
	claims   *claimReconciler
}

// Options configure a Controller. All but Owner, and what extensions provide, are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// The caller runs Caches and Owner.
	Caches *observe.Caches
	Owner  *shard.Owner
	Events record.EventBroadcaster
	// DriverPods, if set, knows the driver Pods of templates. The caller runs it.
	DriverPods devices.Presence
	// Kubelets, if set, knows the real drivers. The caller runs it.
	Kubelets Kubelets
	// Gate, if set, holds claims back. The caller runs it.
	Gate Gate
	// DeviceHealth, if set, knows the health of devices. The caller runs it.
	DeviceHealth DeviceHealth
	// KubeletRecorder, if set, records what a kubelet measures.
	KubeletRecorder KubeletRecorder
}

// New makes a Controller; Run starts it.
func New(o Options) *Controller {
	if o.DriverPods == nil {
		o.DriverPods = devices.UnknownPresence{}
	}
	if o.KubeletRecorder == nil {
		o.KubeletRecorder = noRecorder{}
	}
	observer := &observer{o, newStates(o.KubeletRecorder)}
	writer := &writer{observer}
	c := &Controller{observer: observer, pods: &podReconciler{writer: writer}, claims: &claimReconciler{writer: writer}}
	c.pods.loop = loop.New("pods", c.pods.reconcile)
	c.claims.loop = loop.New("claims", func(ctx context.Context, key types.NamespacedName) error {
		return retryConflicts(func(bool) error { return c.claims.reconcile(ctx, key) })
	})
	o.Config.OnChange(c.enqueueAll)
	o.Owner.OnChange(c.enqueueNodeAndClaims, c.enqueueAll)
	if o.Kubelets != nil {
		o.Kubelets.OnChange(c.enqueueNode, c.pods.loop.Add)
	}
	if o.Gate != nil {
		o.Gate.OnChange(c.enqueueNode)
	}
	if o.DeviceHealth != nil {
		o.DeviceHealth.OnChange(c.pods.enqueueLivePods)
	}
	c.addHandlers()
	return c
}

// Metrics collects the Controller's metrics.
func (c *Controller) Metrics() prometheus.Collector {
	return c.observer.states.metrics.all
}

// CheckHealth returns an error if a loop of the Controller is stuck.
func (c *Controller) CheckHealth() error {
	return errors.Join(c.pods.loop.CheckHealth(), c.claims.loop.CheckHealth())
}

// Run prepares until ctx ends, with the given number of workers for Pods and as many for claims. It returns once everything
// that it started has stopped. It waits for complete caches first, since it would read what they lack for each Pod.
func (c *Controller) Run(ctx context.Context, workers int) {
	cache.WaitFor(ctx, "", c.observer.Caches.Synced()...)
	var running sync.WaitGroup
	running.Go(func() { c.claims.loop.Run(ctx, workers) })
	running.Go(func() { c.observer.states.podAnswers.Run(ctx, c.pods.loop.Add) })
	running.Go(func() { c.observer.states.claimAnswers.Run(ctx, c.claims.loop.Add) })
	c.pods.loop.Run(ctx, workers) // shuts the queue down even if ctx has ended
	running.Wait()
}

// IsPrepared reports whether a claim is prepared for any Pod.
func (c *Controller) IsPrepared(claim types.UID) bool {
	return len(c.observer.states.usersOf(claim)) > 0
}

// FailureOf returns why preparing fails for one of the consumers of a claim, or "".
func (c *Controller) FailureOf(consumers []resourcev1.ResourceClaimConsumerReference) string {
	states := c.observer.states
	states.mu.Lock()
	defer states.mu.Unlock()
	for _, consumer := range consumers {
		if failure := states.waiting[consumer.UID].failure; failure != "" {
			return failure
		}
	}
	return ""
}

// Changes counts the changes of Pods, of claims, and of what is prepared.
func (c *Controller) Changes() uint64 {
	return c.observer.states.changes.Load()
}

// Waiting is a Pod on a fake node whose claims are not prepared yet.
type Waiting struct {
	Pod *corev1.Pod
	// Failure is why the last try failed, and Retry the time of the next one. Both are empty if nothing has failed.
	Failure string
	Retry   time.Time
}

// Waiting lists the Pods that wait for this replica, in no order.
func (c *Controller) Waiting() []Waiting {
	states := c.observer.states
	states.mu.Lock()
	reasons := slices.Collect(maps.Values(states.waiting))
	states.mu.Unlock()
	var all []Waiting
	for _, why := range reasons {
		if pod := c.observer.Caches.Pods.Get(why.pod); pod != nil {
			all = append(all, Waiting{Pod: pod, Failure: why.failure, Retry: why.retry})
		}
	}
	return all
}

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
			if c.observer.states.podAnswers.Observed(observe.Key(pod), pod.ResourceVersion) {
				c.observer.states.changes.Add(1)
				return
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
			if isOwn := c.observer.states.claimAnswers.Observed(observe.Key(claim), claim.ResourceVersion); isOwn {
				c.observer.states.changes.Add(1)
				return
			}
			c.claimChanged(claim, old.Allocated != claim.Allocated || old.Node != claim.Node)
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observe.Claim]) {
			c.observer.states.changes.Add(1)
			c.observer.states.claimAnswers.Forget(types.NamespacedName(deleted.GetObjectName()))
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
