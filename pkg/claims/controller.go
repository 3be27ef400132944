package claims

import (
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// Controller prepares and unprepares the claims of Pods on fake nodes.
type Controller struct {
	observer *observer
	ledger   *ledger
	metrics  *metrics
	pods     *podReconciler
	claims   *claimReconciler
}

// Options are what a Controller works with. All but Owner are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches *observe.Caches
	Owner  *shard.Owner
	Events record.EventBroadcaster
}

// New makes a Controller; Run starts it.
func New(o Options) *Controller {
	states := newStates()
	metrics := newMetrics(states.prepared)
	observer := &observer{client: o.Client, config: o.Config, caches: o.Caches, owner: o.Owner, states: states}
	ledger := &ledger{states: states, metrics: metrics}
	writer := &writer{client: o.Client, observer: observer, ledger: ledger, metrics: metrics}
	c := &Controller{
		observer: observer,
		ledger:   ledger,
		metrics:  metrics,
		pods:     &podReconciler{observer: observer, writer: writer, ledger: ledger, metrics: metrics, events: o.Events},
		claims:   &claimReconciler{observer: observer, writer: writer},
	}
	c.pods.loop = loop.New("pods", c.pods.reconcile)
	c.claims.loop = loop.New("claims", c.claims.reconcile)
	o.Config.OnChange(c.enqueueAll)
	o.Owner.OnChange(c.take, c.enqueueAll)
	c.addHandlers()
	return c
}

// Metrics is the collector of the Controller's metrics.
func (c *Controller) Metrics() prometheus.Collector {
	return c.metrics.all
}

// CheckHealth returns an error if a loop of the Controller is stuck.
func (c *Controller) CheckHealth() error {
	return errors.Join(c.pods.loop.CheckHealth(), c.claims.loop.CheckHealth())
}

// Run prepares with that many workers for Pods, and as many for claims, until
// ctx ends, and returns when all that it started has stopped. It begins when all
// caches are complete: what is not known to be published would be asked for, Pod by Pod.
func (c *Controller) Run(ctx context.Context, workers int) {
	cache.WaitFor(ctx, "", c.observer.caches.Synced()...)
	var running sync.WaitGroup
	running.Go(func() { c.claims.loop.Run(ctx, workers) })
	c.pods.loop.Run(ctx, workers) // also where ctx has ended, to shut the queue down
	running.Wait()
}
