package claims

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/kubeletmetrics"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// pluginPause is the least time between two looks at the Pods of a node for what its plugins do or
// tell, so that a plugin that flaps does not write without end. Sockets are looked for as often.
const pluginPause = time.Second

// Controller prepares and unprepares the claims of Pods on fake nodes.
type Controller struct {
	observer *observer
	pods     *podReconciler
	claims   *claimReconciler
}

// Options are what a Controller works with. All but Owner, Kubelets and KubeletMetrics are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches *observe.Caches
	Owner  *shard.Owner
	Events record.EventBroadcaster
	// Kubelets know the real drivers, if there can be any. They are run by the caller.
	Kubelets Kubelets
	// KubeletMetrics are told what a kubelet measures.
	KubeletMetrics *kubeletmetrics.Metrics
}

// New makes a Controller; Run starts it.
func New(o Options) *Controller {
	observer := &observer{o, newStates()}
	writer := &writer{observer, observer.states.metrics}
	c := &Controller{
		observer: observer,
		pods:     &podReconciler{observer: observer, writer: writer},
		claims:   &claimReconciler{observer: observer, writer: writer},
	}
	o.KubeletMetrics.CountInUse(observer.states.inUse)
	c.pods.loop = loop.New("pods", c.pods.reconcile)
	c.claims.loop = loop.New("claims", c.claims.reconcile)
	o.Config.OnChange(c.enqueueAll)
	o.Owner.OnChange(c.take, c.enqueueAll)
	if o.Kubelets != nil {
		o.Kubelets.OnChange(loop.NewDamper(pluginPause, c.enqueueNode).Add, c.pods.loop.Add)
	}
	c.addHandlers()
	return c
}

// Metrics is the collector of the Controller's metrics.
func (c *Controller) Metrics() prometheus.Collector {
	return c.observer.states.metrics.all
}

// CheckHealth returns an error if a loop of the Controller is stuck.
func (c *Controller) CheckHealth() error {
	return errors.Join(c.pods.loop.CheckHealth(), c.claims.loop.CheckHealth())
}

// Run prepares with that many workers for Pods, and as many for claims, until
// ctx ends, and returns when all that it started has stopped. It begins when all
// caches are complete: what is not known to be published would be asked for, Pod by Pod.
func (c *Controller) Run(ctx context.Context, workers int) {
	cache.WaitFor(ctx, "", c.observer.Caches.Synced()...)
	var running sync.WaitGroup
	running.Go(func() { c.claims.loop.Run(ctx, workers) })
	running.Go(func() { c.pods.askForHealth(ctx) })
	running.Go(func() { c.observer.states.podWrites.Run(ctx, c.pods.loop.Add) })
	running.Go(func() { c.observer.states.claimWrites.Run(ctx, c.claims.loop.Add) })
	c.pods.loop.Run(ctx, workers) // also where ctx has ended, to shut the queue down
	running.Wait()
}

// Allocations are the devices that claims have, by what the cache says.
func (c *Controller) Allocations() []inventory.Allocation {
	var all []inventory.Allocation
	covers := c.coverageOfSlices()
	for observed := range c.observer.Caches.Claims.All() {
		claim := observed.Decode()
		if claim.Status.Allocation == nil {
			continue
		}
		used, ours, pods := len(c.observer.states.usersOf(claim.UID)) > 0, plan.ManagedBy(claim, plan.Manager), c.podNames(claim)
		failure := c.observer.states.failureOf(claim.Status.ReservedFor)
		node := plan.NodeOf(claim)
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			allocation := inventory.AllocationOf(claim, result)
			has, written := &allocation.Claim, ours && plan.EntryOf(claim, plan.ResultID(result)) != nil
			has.Pods, has.Prepared = pods, used || written
			allocation.Node, allocation.Covered = node, covers(node, result, written)
			if !has.Prepared && has.Failure == "" {
				has.Failure = failure
			}
			all = append(all, allocation)
		}
	}
	return all
}

// coverageOfSlices returns whether the cache of slices would have an allocated device if it were
// published: kwok-dra has prepared it, or a template is to publish it. The cache has no
// slices of real drivers, and none of the others before it is complete.
func (c *Controller) coverageOfSlices() func(node string, result *resourcev1.DeviceRequestAllocationResult, written bool) bool {
	set := c.observer.Config.Current()
	if !isDone(c.observer.Caches.Slices.Synced()) {
		return func(string, *resourcev1.DeviceRequestAllocationResult, bool) bool { return false }
	}
	realDrivers := map[string]plan.Driver{}
	return func(node string, result *resourcev1.DeviceRequestAllocationResult, written bool) bool {
		switch {
		case written:
			return true
		case set == nil || !set.HasDriver(result.Driver):
			return false
		case node == "":
			return set.SharedPool(result.Driver, result.Pool) != nil
		}
		if c.observer.Kubelets == nil || !c.observer.Kubelets.Enabled() {
			return c.observer.Caches.Nodes.Has(node)
		}
		if _, known := realDrivers[node]; !known {
			realDrivers[node] = nil
			if fake := c.observer.Caches.Nodes.Get(node); fake != nil {
				realDrivers[node] = c.observer.Kubelets.Driver(nil, fake, set.HasDriver)
			}
		}
		return realDrivers[node] != nil && !realDrivers[node].Has(result.Driver)
	}
}

func isDone(checkers []cache.DoneChecker) bool {
	return !slices.ContainsFunc(checkers, func(checker cache.DoneChecker) bool {
		select {
		case <-checker.Done():
			return false
		default:
			return true
		}
	})
}

// Changes counts what changes Allocations.
func (c *Controller) Changes() uint64 {
	return c.observer.states.changes.Load()
}

// podNames are the names of the Pods that a claim is reserved for. Of a group of
// Pods, those that use the claim and are bound are known.
func (c *Controller) podNames(claim *resourcev1.ResourceClaim) []string {
	var pods []*corev1.Pod
	var names []string
	for _, consumer := range claim.Status.ReservedFor {
		if plan.IsPod(consumer) {
			names = append(names, consumer.Name)
		} else if pods == nil {
			pods = c.observer.Caches.Pods.Consumers(claim)
		}
	}
	for _, pod := range pods {
		if c.observer.Caches.Nodes.Has(pod.Spec.NodeName) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
