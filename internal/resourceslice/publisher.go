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

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// Publisher publishes and retires the slices of the fake nodes. Events queue the keys of
// nodes and of pools that nodes share; reconcile deals with one.
type Publisher struct {
	config *config.Store
	caches *observe.Caches
	owner  *shard.Owner
	pods   devices.Presence
	// live reads the Nodes that a cache may not have yet.
	live     typedcorev1.NodeInterface
	prober   *Prober
	memory   *memory
	writer   *writer
	reporter *reporter
	loop     *loop.Loop[facts.SlicesKey]
}

// Options configure a Publisher. All but Owner, DriverPods and Outcomes are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// The caller runs Caches and Owner.
	Caches   *observe.Caches
	Owner    *shard.Owner
	Recorder record.EventRecorder
	// DriverPods knows the driver Pods, and is run by the caller. Without it they are unknown.
	DriverPods devices.Presence
	// Outcomes gets the state of the templates after each reconciliation of a node, or of a
	// pool that nodes share.
	Outcomes func(of string, templates map[string]Outcome)
}

// New makes a Publisher; Run starts it.
func New(o Options) *Publisher {
	if o.DriverPods == nil {
		o.DriverPods = devices.UnknownPresence{}
	}
	p := &Publisher{
		config: o.Config, caches: o.Caches, owner: o.Owner, pods: o.DriverPods, live: o.Client.CoreV1().Nodes(),
		prober: NewProber(o.Client), memory: newMemory(),
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

// Idle reports whether all nodes and pools have been reconciled since they changed.
func (p *Publisher) Idle() bool {
	return p.prober.isIdle() && p.loop.Idle() && p.prober.isIdle() // a probe queues its keys again
}

// CheckHealth returns an error if the Publisher's loop is stuck.
func (p *Publisher) CheckHealth() error {
	return p.loop.CheckHealth()
}

// cacheSyncTimeout bounds the wait for the caches that only other controllers need.
const cacheSyncTimeout = 5 * time.Second

// Run publishes with that many workers until ctx ends, and returns when all that it started
// has stopped. It begins when the caches of nodes and slices are complete and, unless that
// takes long, the others, which the work on a large fleet would delay.
func (p *Publisher) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() {
		p.prober.watchServer(ctx, func() {
			p.reporter.forgetDropped()
			p.enqueueAll()
		})
	})
	running.Go(func() { p.writer.expectations.Run(ctx, p.loop.Add) })
	cache.WaitFor(ctx, "", slices.Concat(p.caches.Nodes.Synced(), p.caches.Slices.Synced())...)
	waiting, cancel := context.WithTimeout(ctx, cacheSyncTimeout)
	cache.WaitFor(waiting, "", p.caches.Synced()...)
	cancel()
	p.loop.Run(ctx, workers) // even if ctx has ended, to shut the queue down
	running.Wait()
	p.prober.probes.Wait()
}

func (p *Publisher) nodeChanged(name string) {
	isFake := p.caches.Nodes.Has(name)
	p.memory.updateEntry(facts.NodeKey(name), func(e *entry) {
		e.isManaged = e.isManaged || isFake // it may leave the selection before it is reconciled
		if e.isManaged && e.changedAt.IsZero() {
			e.changedAt = time.Now()
		}
		e.hasForeignWrites = false
	})
	p.loop.Add(facts.NodeKey(name))
}

func (p *Publisher) sliceChanged(slice *facts.Slice) {
	requeue, isForeign := p.writer.expectations.Observed(slice.Key(), slice.GetName(), slice.ResourceVersion)
	if isForeign {
		p.memory.updateEntry(slice.Key(), func(e *entry) { e.hasForeignWrites = true })
	}
	if requeue {
		p.loop.Add(slice.Key())
	}
}

func (p *Publisher) sliceDeleted(deleted cache.DeletedObject[*facts.Slice]) {
	if slice := deleted.OptionalObj; slice != nil {
		if p.writer.expectations.Deleted(slice.Key(), slice.GetName()) {
			p.memory.updateEntry(slice.Key(), func(e *entry) { e.hasForeignWrites = true })
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

// enqueueAll queues every node, and all that has slices or is to have some. What others did
// to slices holds back nothing that is new.
func (p *Publisher) enqueueAll() {
	for _, key := range p.memory.knownKeys() {
		p.memory.forgetForeignWrites(key)
		if key.IsShared() { // its template may be gone, or name another pool
			p.loop.Add(key)
		}
	}
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
}
