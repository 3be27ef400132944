package resourceslice

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// Publisher publishes and retires the slices of the fake nodes. Events queue the keys of nodes and of pools that nodes
// share; reconcile deals with one.
type Publisher struct {
	client   kubernetes.Interface
	config   *config.Store
	caches   *observe.Caches
	owner    *shard.Owner
	pods     devices.Presence
	prober   *Prober
	reporter *reporter
	memory   *memory
	// expectations has the writes that the cache has not seen.
	expectations expectations.Expectations[facts.SlicesKey, string]
	loop         *loop.Loop[facts.SlicesKey]
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
	// Outcomes gets the state of the templates after each reconciliation of a node, or of a pool that nodes share.
	Outcomes func(of string, templates map[string]Outcome)
}

// New makes a Publisher; Run starts it.
func New(o Options) *Publisher {
	if o.DriverPods == nil {
		o.DriverPods = devices.UnknownPresence{}
	}
	if o.Outcomes == nil {
		o.Outcomes = func(string, map[string]Outcome) {}
	}
	const initial = firstRound >> (freeRounds - 1) // doubled by each free round
	p := &Publisher{
		client: o.Client, config: o.Config, caches: o.Caches, owner: o.Owner, pods: o.DriverPods,
		prober: NewProber(o.Client), reporter: newReporter(o),
		memory: &memory{
			rounds: flowcontrol.NewBackOff(initial, lastRound), sharedRounds: flowcontrol.NewBackOff(initial, lastSharedRound),
			entries: map[facts.SlicesKey]*entry{}, contenders: map[facts.PoolID]sets.Set[facts.SlicesKey]{},
		},
	}
	p.loop = loop.New("slices", p.reconcile)
	o.Config.OnChange(func() {
		if set := p.config.Current(); set != nil {
			p.reporter.forgetUnused(set.Templates)
		}
		p.enqueueAll()
	})
	o.Owner.OnChange(func(node string) { p.loop.Add(facts.SlicesKey{Node: node}) }, p.enqueueAll)
	o.Caches.Nodes.Handle(func(name string, _, now *observe.Node) { p.nodeChanged(name, now != nil && now.IsFake) })
	o.DriverPods.Handle(func(node string) { p.nodeChanged(node, p.caches.Nodes.Has(node)) }, p.enqueueAll)
	o.Caches.Slices.Handle(cache.TypedResourceEventHandlerFuncs[*facts.Slice]{
		AddFunc: func(slice *facts.Slice) {
			p.sliceChanged(slice)
			p.enqueueHolders(slice)
		},
		UpdateFunc: func(_, slice *facts.Slice) { p.sliceChanged(slice) },
		DeleteFunc: func(deleted cache.DeletedObject[*facts.Slice]) {
			if slice := deleted.OptionalObj; slice != nil {
				if p.expectations.Deleted(slice.Key(), slice.GetName()) {
					p.memory.updateEntry(slice.Key(), func(e *entry) { e.hasForeignWrites = true })
				}
				p.loop.Add(slice.Key())
				for key := range p.memory.popContenders(slice.PoolID) {
					p.loop.Add(key)
				}
			}
		},
	})
	return p
}

// Metrics is the collector of the Publisher's metrics.
func (p *Publisher) Metrics() prometheus.Collector { return p.reporter.metrics.all }

// Idle reports whether all nodes and pools have been reconciled since they changed.
func (p *Publisher) Idle() bool {
	return p.prober.isIdle() && p.loop.Idle() && p.prober.isIdle() // a probe queues its keys again
}

// CheckHealth returns an error if the Publisher's loop is stuck.
func (p *Publisher) CheckHealth() error { return p.loop.CheckHealth() }

// cacheSyncTimeout bounds the wait for the caches that only other controllers need.
const cacheSyncTimeout = 5 * time.Second

// Run publishes with that many workers until ctx ends, and returns when all that it started has stopped. It begins when
// the caches of nodes and slices are complete and, unless that takes long, the others, which the work on a large fleet
// would delay.
func (p *Publisher) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() {
		p.prober.watchServer(ctx, func() { // another server may keep the fields that this one drops
			p.reporter.mu.Lock()
			clear(p.reporter.dropped)
			p.reporter.mu.Unlock()
			p.reporter.metrics.dropped.Reset()
			p.enqueueAll()
		})
	})
	running.Go(func() { p.expectations.Run(ctx, p.loop.Add) })
	cache.WaitFor(ctx, "", slices.Concat(p.caches.Nodes.Synced(), p.caches.Slices.Synced())...)
	waiting, cancel := context.WithTimeout(ctx, cacheSyncTimeout)
	cache.WaitFor(waiting, "", p.caches.Synced()...)
	cancel()
	p.loop.Run(ctx, workers) // even if ctx has ended, to shut the queue down
	running.Wait()
	p.prober.running.Wait()
}

func (p *Publisher) nodeChanged(name string, isFake bool) {
	p.memory.updateEntry(facts.SlicesKey{Node: name}, func(e *entry) {
		e.isManaged = e.isManaged || isFake // it may leave the selection before it is reconciled
		if e.isManaged && e.changedAt.IsZero() {
			e.changedAt = time.Now()
		}
		e.hasForeignWrites = false
	})
	p.loop.Add(facts.SlicesKey{Node: name})
}

func (p *Publisher) sliceChanged(slice *facts.Slice) {
	requeue, isForeign := p.expectations.Observed(slice.Key(), slice.GetName(), slice.ResourceVersion)
	if isForeign {
		p.memory.updateEntry(slice.Key(), func(e *entry) { e.hasForeignWrites = true })
	}
	if requeue {
		p.loop.Add(slice.Key())
	}
}

// enqueueAll queues every node, and all that has slices or is to have some. Neither a foreign write nor an earlier
// refusal holds back what is new.
func (p *Publisher) enqueueAll() {
	for _, key := range p.memory.knownKeys() {
		p.memory.forgetForeignWrites(key)
		p.loop.Forget(key)
		if key.IsShared() { // its template may be gone, or name another pool
			p.loop.Add(key)
		}
	}
	for _, name := range p.caches.Nodes.Keys() {
		p.loop.Add(facts.SlicesKey{Node: name})
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

const (
	// freeRounds is how often in a row kwok-dra undoes at once what others did to the slices of a key; after that the
	// time between doubles from firstRound to lastRound.
	freeRounds = 3
	firstRound = 100 * time.Millisecond
	lastRound  = 30 * time.Second
	// lastSharedRound is the lastRound of a pool that nodes share: an installation of a version without records undoes
	// the same for ever.
	lastSharedRound = 30 * time.Minute
)

// memory is what the Publisher remembers of each key from one reconciliation to the next.
type memory struct {
	// rounds and sharedRounds keep the Publisher and other writers from undoing each other's writes at full speed: of
	// nodes, and of pools that nodes share. Two replicas would do so if one does not see the newest Node or
	// configuration yet: each plans correctly from what it sees.
	rounds, sharedRounds *flowcontrol.Backoff

	mu      sync.Mutex
	entries map[facts.SlicesKey]*entry
	// contenders has, by pool, the nodes that would publish a pool of that name while others have slices of one. They may
	// publish it once such a slice goes.
	contenders map[facts.PoolID]sets.Set[facts.SlicesKey]
}

// entry is the memory of one key. An empty one is not kept.
type entry struct {
	// isManaged says that the node is, or was, fake. As long as slices of it may still come, it tells them from another
	// installation's.
	isManaged bool
	// emptySince is when a node that is no longer fake was first seen without slices.
	emptySince time.Time
	previous   plan.Previous
	// changedAt is the time of the first event of the node that was not reconciled yet.
	changedAt time.Time
	// isTemplated says that a template has had the shared pool exist since the process began.
	isTemplated bool
	witness     witness
	// hasForeignWrites says that others have changed the slices, and that nothing that the plan depends on has changed
	// since.
	hasForeignWrites bool
	// unrecorded has the UIDs of slices without a record that were obsolete.
	unrecorded sets.Set[types.UID]
	// takenFrom has the installations from which slices were taken over since the node was selected, by driver. It may
	// be this one under its former name. If an installation takes its slices back, it is alive, and keeps them.
	takenFrom map[string]installation.ID
}

// witness is a node that requires a shared pool, or, until one is found, the node that is being examined.
type witness struct {
	node    string
	isFound bool
}

// entryOf returns a copy.
func (m *memory) entryOf(key facts.SlicesKey) (known entry) {
	m.updateEntry(key, func(e *entry) { known = *e })
	return known
}

func (m *memory) updateEntry(key facts.SlicesKey, change func(*entry)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil {
		e = &entry{}
	}
	change(e)
	m.entries[key] = e
	isOfNode := e.isManaged || !e.changedAt.IsZero() || e.unrecorded != nil || e.takenFrom != nil
	if !isOfNode && !e.hasForeignWrites && !e.isTemplated && e.witness == (witness{}) {
		delete(m.entries, key)
	}
}

// forgetForeignWrites notes that the slices are as they should be, or that what they depend on has changed: the next
// writes do not back off.
func (m *memory) forgetForeignWrites(key facts.SlicesKey) {
	m.updateEntry(key, func(e *entry) { e.hasForeignWrites = false })
}

func (m *memory) knownKeys() []facts.SlicesKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.entries))
}

// foreignWriteBackoff is how long writes that undo those of others have to wait, at most, since the others undo ours.
// If it is 0, another round begins.
func (m *memory) foreignWriteBackoff(key facts.SlicesKey) time.Duration {
	if !m.entryOf(key).hasForeignWrites {
		return 0 // the writes of another driver have begun a round
	}
	rounds := m.rounds
	if key.IsShared() {
		rounds = m.sharedRounds
	}
	wait := rounds.Get(key.String())
	if wait >= firstRound && rounds.IsInBackOffSinceUpdate(key.String(), time.Now()) {
		return wait
	}
	m.forgetForeignWrites(key)
	rounds.Next(key.String(), time.Now())
	rounds.GC()
	return 0
}
