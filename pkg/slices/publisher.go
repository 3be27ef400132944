package slices

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// Publisher publishes and retires the slices of the fake nodes.
type Publisher struct {
	client   resourceclient.ResourceSliceInterface
	live     typedcorev1.NodeInterface
	config   *config.Store
	nodes    *lifecycle.Nodes
	owner    *shard.Owner
	recorder record.EventRecorder
	outcomes func(of string, templates map[string]Outcome)

	slices  cache.TypedSharedIndexInformer[*Observed]
	synced  []cache.DoneChecker
	loop    *loop.Loop[scope]
	pending *pending
	// contests are those with others who write the same slices.
	contests *contests
	fields   *serverFields
	metrics  *metrics
	changes  atomic.Uint64

	mu sync.Mutex
	// changed maps scopes to the time of their first event that has not been
	// dealt with.
	changed map[scope]time.Time
	// known maps nodes to the pools that they should have had at last. One that is no
	// longer fake stays until its slices are gone for good: it is not someone else's.
	known map[string][]poolID
	// bare are nodes that are known and no longer fake, by since when they have no
	// slices.
	bare map[string]time.Time
	// witnesses maps the pools that nodes share, and that should exist, to a node that
	// requires them.
	witnesses map[scope]witness
	// told are the templates that are hidden, and by which, of which an event tells.
	told map[[2]string]bool
	// shared are the pools that nodes share and that a template has had exist.
	shared map[scope]bool
}

// Options are what a Publisher works with. All but Owner and Outcomes are
// required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Nodes and Owner are run by the caller.
	Nodes    *lifecycle.Nodes
	Owner    *shard.Owner
	Recorder record.EventRecorder
	// Outcomes gets the state of the templates on a node, or of a pool that
	// nodes share, each time that it has been looked at.
	Outcomes func(of string, templates map[string]Outcome)
}

// New makes a Publisher; Run starts it.
func New(o Options) (*Publisher, error) {
	p := &Publisher{
		client:   o.Client.ResourceV1().ResourceSlices(),
		live:     o.Client.CoreV1().Nodes(),
		config:   o.Config,
		nodes:    o.Nodes,
		owner:    o.Owner,
		recorder: o.Recorder,
		outcomes: o.Outcomes,
		slices:   newSliceInformer(o.Client),
		pending:  newPending(),
		contests: newContests(),
		changed:  map[scope]time.Time{},
		known:    map[string][]poolID{},
		bare:     map[string]time.Time{},

		witnesses: map[scope]witness{},
		told:      map[[2]string]bool{},
		shared:    map[scope]bool{},
	}
	p.loop = loop.New("slices", p.reconcile)
	p.fields = &serverFields{client: p.client, version: o.Client.Discovery(), report: p.reportDropped, doubts: make(chan struct{}, 1)}
	p.fields.forget()
	p.metrics = newMetrics(p.slices.GetStore())
	o.Config.OnChange(p.configChanged)
	o.Owner.OnChange(func(node string) { p.loop.Add(nodeScope(node)) }, p.enqueueAll)
	return p, p.addHandlers()
}

// Metrics is the collector of the Publisher's metrics.
func (p *Publisher) Metrics() prometheus.Collector {
	return p.metrics
}

// Synced are done when the caches are complete.
func (p *Publisher) Synced() []cache.DoneChecker {
	return p.synced
}

// othersPatience bounds the wait for the caches of other controllers.
const othersPatience = 5 * time.Second

// Run publishes with that many workers until ctx ends, and returns when all
// that it started has stopped. It begins when its caches are complete and, unless
// that takes long, those of others, which the work on a large fleet would delay.
func (p *Publisher) Run(ctx context.Context, workers int, others ...cache.DoneChecker) {
	var running sync.WaitGroup
	running.Go(func() { p.slices.RunWithContext(ctx) })
	running.Go(func() { p.fields.watch(ctx, p.serverChanged) })
	cache.WaitFor(ctx, "", p.synced...)
	waiting, cancel := context.WithTimeout(ctx, othersPatience)
	cache.WaitFor(waiting, "", others...)
	cancel()
	p.loop.Run(ctx, workers) // also where ctx has ended, to shut the queue down
	running.Wait()
}

// configChanged forgets what was told of templates that no longer are as they were.
func (p *Publisher) configChanged() {
	p.fields.recant(p.config.Current(), func(template, field string) { p.metrics.dropped.DeleteLabelValues(template, field) })
	p.enqueueAll()
}

// serverChanged lays everything out again.
func (p *Publisher) serverChanged() {
	p.metrics.dropped.Reset()
	p.enqueueAll()
}

// reconcile brings the slices of one scope to the state they should be in.
func (p *Publisher) reconcile(ctx context.Context, of scope) error {
	if left := p.pending.blocks(of); left > 0 {
		p.loop.AddAfter(of, left)
		return nil
	}
	set := p.config.Current()
	if set == nil {
		return nil
	}
	existing, err := p.existing(of)
	if err != nil {
		return loop.Terminal(err)
	}
	if of.shared() {
		return p.reconcileShared(ctx, set, of, existing)
	}
	return p.reconcileNode(ctx, set, of, existing)
}

func (p *Publisher) reconcileNode(ctx context.Context, set *config.Set, of scope, existing []*Observed) error {
	since := p.takeChanged(of)
	node := p.nodes.Get(of.node)
	if node == nil && p.others(of.node) {
		p.contests.accept(of)
		return nil
	}
	p.tellShared(ctx, set, node, of.node)
	want := p.desire(ctx, set, node, of.node, existing)
	var h holder
	if node != nil {
		h = nodeHolder(node)
	}
	to := target{scope: of, holder: h, node: node, existing: existing, watched: !p.owner.Acts(of.node, node != nil)}
	if node == nil && !to.watched && len(existing) > 0 {
		if exists, err := p.existsLive(ctx, of.node); exists || err != nil {
			return err
		}
	}
	results := p.bringTo(ctx, to, want)
	p.report(of, &want, want.templates, results)
	if to.watched {
		return watchedErr(results.err())
	}
	p.tellHidden(node, want.hidden)
	if err := results.err(); err != nil {
		p.putBackChanged(of, since)
		return p.failed(node, of, err)
	}
	if results.wrote() && !since.IsZero() {
		p.metrics.published(since)
	}
	return p.refused(node, want.problems())
}

// desire works out what a node should have, and remembers it. Node is nil where
// there is none.
func (p *Publisher) desire(ctx context.Context, set *config.Set, node *corev1.Node, name string, existing []*Observed) desired {
	if node == nil {
		p.leave(name, len(existing) == 0)
		return desired{}
	}
	p.mu.Lock()
	known := p.known[name]
	p.mu.Unlock()
	want := desire(ctx, set, node, existing, known)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[name] = want.poolIDs(node, existing, known)
	delete(p.bare, name)
	return want
}

// target is what is brought to a state.
type target struct {
	scope  scope
	holder holder
	// node is where events go. It may be nil.
	node     *corev1.Node
	existing []*Observed
	// watched says that another replica acts for it.
	watched bool
}

// bringTo writes what is missing to what is wanted, driver by driver. A write
// that fails stops only its own driver.
func (p *Publisher) bringTo(ctx context.Context, t target, want desired) results {
	all := results{}
	drivers := statesByDriver(t, want)
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		all[driver] = p.bringDriver(ctx, t, drivers[driver])
	}
	if all.settled() {
		p.contests.accept(t.scope)
	}
	return all
}

// statesByDriver are the states of the drivers that are not held.
func statesByDriver(t target, want desired) map[string]*driverState {
	drivers := map[string]*driverState{}
	of := func(driver string) *driverState {
		if drivers[driver] == nil {
			drivers[driver] = &driverState{}
		}
		return drivers[driver]
	}
	for _, pool := range want.pools {
		of(pool.Driver).pools = append(of(pool.Driver).pools, pool)
	}
	for _, slice := range t.existing {
		of(slice.Driver).existing = append(of(slice.Driver).existing, slice)
	}
	maps.DeleteFunc(drivers, func(driver string, _ *driverState) bool { return want.held[driver] != nil })
	return drivers
}

// driverState is what a driver's slices should be, and what they are.
type driverState struct {
	pools    []devices.Pool
	existing []*Observed
}

func (p *Publisher) bringDriver(ctx context.Context, t target, state *driverState) result {
	pools, layout, err := p.fields.fit(ctx, t.node, state.pools)
	if err != nil {
		return result{err: err}
	}
	writes, err := Plan(t.holder, pools, layout, state.existing)
	if err != nil || writes.Empty() {
		return result{pools: pools, layout: layout, err: err}
	}
	if t.watched {
		return result{behind: true}
	}
	if left := p.contests.left(t.scope); left > 0 {
		klog.FromContext(ctx).Info("Others change the slices as well, waiting; look for another kwok-dra", "of", t.scope, "wait", left)
		p.loop.AddAfter(t.scope, left)
		return result{behind: true}
	}
	p.contests.undo(t.scope)
	err = p.apply(ctx, t.scope, writes)
	if apierrors.IsAlreadyExists(err) {
		err = p.takeOver(ctx, t, pools, layout, state.existing)
	}
	if err != nil {
		p.fields.doubt(err)
		return result{err: err}
	}
	klog.FromContext(ctx).V(2).Info("Brought slices up to date", "of", t.scope,
		"created", len(writes.Create), "updated", len(writes.Update), "deleted", len(writes.Delete))
	return result{wrote: true, pools: pools, layout: layout}
}
