package resourceslice

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// Publisher publishes and retires the slices of the fake nodes. Events queue the keys
// of nodes and of pools that nodes share; reconcile deals with one.
type Publisher struct {
	observer
	owner   *shard.Owner
	prober  *Prober
	writer  *writer
	records nodeRecords
	shared  sharedPools
	// unrecorded has, by its facts.SlicesKey, the UIDs of the slices without a record that were
	// not wanted.
	unrecorded sync.Map
	taken      takenOver
	reporter   *reporter
	loop       *loop.Loop[facts.SlicesKey]
}

// observer is what plans are made from. It writes nothing.
type observer struct {
	config *config.Store
	caches *observe.Caches
	pods   devices.Presence
	// live is for what a cache that lags does not have.
	live typedcorev1.NodeInterface
}

// Options are what a Publisher works with. All but Owner, DriverPods and Outcomes are
// required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches   *observe.Caches
	Owner    *shard.Owner
	Recorder record.EventRecorder
	// DriverPods are run by the caller. Without them none are known.
	DriverPods devices.Presence
	// Outcomes gets the state of the templates on a node, or of a pool that
	// nodes share, each time that it has been looked at.
	Outcomes func(of string, templates map[string]Outcome)
}

// New makes a Publisher; Run starts it.
func New(o Options) *Publisher {
	if o.DriverPods == nil {
		o.DriverPods = devices.UnknownPresence{}
	}
	p := &Publisher{
		observer: observer{config: o.Config, caches: o.Caches, pods: o.DriverPods, live: o.Client.CoreV1().Nodes()},
		owner:    o.Owner,
		prober:   NewProber(o.Client),
	}
	p.loop = loop.New("slices", p.reconcile)
	p.reporter = newReporter(o, newMetrics(o.Caches.Slices))
	p.writer = newWriter(o.Client, o.Owner.Installation(), p.reporter.metrics, p.loop.Add)
	o.Config.OnChange(p.configChanged)
	o.Owner.OnChange(func(node string) { p.loop.Add(facts.NodeKey(node)) }, p.enqueueAll)
	o.Caches.Nodes.Handle(func(name string, _, _ *observe.Node) { p.nodeChanged(name) })
	o.DriverPods.Handle(p.nodeChanged, p.enqueueAll)
	o.Caches.Slices.Handle(cache.TypedResourceEventHandlerFuncs[*facts.Slice]{
		AddFunc:    p.sliceChanged,
		UpdateFunc: func(_, slice *facts.Slice) { p.sliceChanged(slice) },
		DeleteFunc: p.sliceDeleted,
	})
	return p
}

// Metrics is the collector of the Publisher's metrics.
func (p *Publisher) Metrics() prometheus.Collector {
	return p.reporter.metrics.all
}

// Idle reports whether all nodes and pools have been looked at since they changed.
func (p *Publisher) Idle() bool {
	return p.loop.Idle()
}

// CheckHealth returns an error if the Publisher's loop is stuck.
func (p *Publisher) CheckHealth() error {
	return p.loop.CheckHealth()
}

// othersPatience bounds the wait for the caches that others need.
const othersPatience = 5 * time.Second

// Run publishes with that many workers until ctx ends, and returns when all
// that it started has stopped. It begins when the caches of nodes and slices are
// complete and, unless that takes long, the others, which the work on a large fleet
// would delay.
func (p *Publisher) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() { p.prober.watch(ctx, p.serverChanged) })
	running.Go(func() { p.writer.expectations.Run(ctx, p.loop.Add) })
	cache.WaitFor(ctx, "", slices.Concat(p.caches.Nodes.Synced(), p.caches.Slices.Synced())...)
	waiting, cancel := context.WithTimeout(ctx, othersPatience)
	cache.WaitFor(waiting, "", p.caches.Synced()...)
	cancel()
	p.loop.Run(ctx, workers) // also where ctx has ended, to shut the queue down
	running.Wait()
}

func (p *Publisher) nodeChanged(name string) {
	p.records.note(name, p.caches.Nodes.Has(name))
	p.writer.backoff.reset(facts.NodeKey(name))
	p.loop.Add(facts.NodeKey(name))
}

func (p *Publisher) sliceChanged(slice *facts.Slice) {
	requeue, foreign := p.writer.expectations.Observed(slice.Key(), slice.GetName(), slice.ResourceVersion)
	if foreign {
		p.writer.backoff.foreign.Store(slice.Key(), true)
	}
	if requeue {
		p.loop.Add(slice.Key())
	}
}

func (p *Publisher) sliceDeleted(deleted cache.DeletedObject[*facts.Slice]) {
	if slice := deleted.OptionalObj; slice != nil {
		if foreign := p.writer.expectations.Deleted(slice.Key(), slice.GetName()); foreign {
			p.writer.backoff.foreign.Store(slice.Key(), true)
		}
		p.loop.Add(slice.Key())
	}
}

func (p *Publisher) configChanged() {
	if set := p.config.Current(); set != nil {
		p.reporter.forgetUnused(set.Templates)
	}
	p.enqueueAll()
}

// serverChanged plans everything again for another API server.
func (p *Publisher) serverChanged() {
	p.reporter.forgetDropped()
	p.enqueueAll()
}

// enqueueAll queues every node, and all that has slices or is to have some.
func (p *Publisher) enqueueAll() {
	p.writer.backoff.foreign.Clear()
	for _, name := range p.caches.Nodes.Keys() {
		p.loop.Add(facts.NodeKey(name))
	}
	for slice := range p.caches.Slices.All() {
		p.loop.Add(slice.Key())
	}
	if set := p.config.Current(); set != nil {
		for _, t := range set.Shared() {
			p.loop.Add(plan.SharedKey(t))
		}
	}
	for key := range p.shared.Range { // its template may be gone, or name another pool
		p.loop.Add(key.(facts.SlicesKey))
	}
}
