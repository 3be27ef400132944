package claims

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
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

// Options are what a Controller works with. All but Owner, DriverPods, Kubelets and KubeletRecorder are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches *observe.Caches
	Owner  *shard.Owner
	Events record.EventBroadcaster
	// DriverPods are run by the caller. Without them none are known.
	DriverPods devices.Presence
	// Kubelets know the real drivers, if there can be any. They are run by the caller.
	Kubelets Kubelets
	// KubeletRecorder records what a kubelet measures.
	KubeletRecorder KubeletRecorder
}

// New makes a Controller; Run starts it.
func New(o Options) *Controller {
	if o.KubeletRecorder == nil {
		o.KubeletRecorder = noRecorder{}
	}
	if o.DriverPods == nil {
		o.DriverPods = devices.UnknownPresence{}
	}
	observer := &observer{o, newStates()}
	writer := &writer{observer, observer.states.metrics}
	c := &Controller{
		observer: observer,
		pods:     &podReconciler{observer: observer, writer: writer},
		claims:   &claimReconciler{observer: observer, writer: writer},
	}
	o.KubeletRecorder.CountInUse(observer.states.countInUse)
	c.pods.loop = loop.New("pods", c.pods.reconcile)
	c.claims.loop = loop.New("claims", c.claims.reconcile)
	o.Config.OnChange(c.enqueueAll)
	o.Owner.OnChange(c.enqueueNodeAndClaims, c.enqueueAll)
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
	running.Go(func() { c.pods.retryHealthSupport(ctx) })
	running.Go(func() { c.observer.states.podWrites.Run(ctx, c.pods.loop.Add) })
	running.Go(func() { c.observer.states.claimWrites.Run(ctx, c.claims.loop.Add) })
	c.pods.loop.Run(ctx, workers) // also where ctx has ended, to shut the queue down
	running.Wait()
}

// IsPrepared reports whether a claim is prepared for any Pod.
func (c *Controller) IsPrepared(claim types.UID) bool {
	return len(c.observer.states.usersOf(claim)) > 0
}

// FailureOf is why preparing fails for one of the consumers of a claim, or is empty.
func (c *Controller) FailureOf(consumers []resourcev1.ResourceClaimConsumerReference) string {
	return c.observer.states.failureOf(consumers)
}

// Changes counts what changes the Pods, the claims, and what is known of both.
func (c *Controller) Changes() uint64 {
	return c.observer.states.changes.Load()
}
