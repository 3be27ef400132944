package shard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
)

// Mode is how replicas share the work.
type Mode string

const (
	// None means that the only replica acts for everything.
	None Mode = "none"
	// Leader means that an elected replica acts for everything, and the others stand by.
	Leader Mode = "leader"
	// Lease means that each replica acts for the nodes whose lease in kube-node-lease the kwok in its own Pod holds,
	// and an elected one for what belongs to no single node.
	Lease Mode = "lease"
)

// ParseMode reads a mode.
func ParseMode(text string) (Mode, error) {
	if mode := Mode(text); mode == None || mode == Leader || mode == Lease {
		return mode, nil
	}
	return "", fmt.Errorf("must be %s, %s or %s", None, Leader, Lease)
}

// Options are what an Owner works with. With mode None only Installation is used.
type Options struct {
	Mode Mode
	// Installation is the one that all replicas belong to.
	Installation installation.ID
	// Client is one that nothing else uses, so that renewals never wait.
	Client kubernetes.Interface
	// Host is the name of the Pod. The holder identity of kwok's leases begins with it.
	Host string
	// Namespace and Name identify the Lease that the leader holds.
	Namespace, Name string
}

// Owner decides what this replica acts for. A nil Owner acts for everything.
type Owner struct {
	options  Options
	onLeased []func(node string)
	onLead   []func()
	// listed is closed after the first list of the leases.
	listed chan struct{}

	leads atomic.Bool

	mu sync.RWMutex
	// leased are the nodes whose lease the kwok in our Pod holds. It is nil before the first list.
	leased sets.Set[string]
}

// New makes an Owner; Run starts it.
func New(o Options) *Owner {
	owner := &Owner{options: o, listed: make(chan struct{})}
	owner.leads.Store(o.Mode == None)
	return owner
}

// OnChange calls node with each node that this replica begins to act for, and all when it becomes the leader. Call it
// before Run.
func (o *Owner) OnChange(node func(name string), all func()) {
	if o != nil {
		o.onLeased, o.onLead = append(o.onLeased, node), append(o.onLead, all)
	}
}

// Installation is the one that this replica belongs to. A nil Owner belongs to none.
func (o *Owner) Installation() installation.ID {
	if o == nil {
		return ""
	}
	return o.options.Installation
}

// Acts reports whether this replica acts for a node and for what belongs to it alone. The leader acts for what is left
// of a node that is deleted or not fake.
func (o *Owner) Acts(node string, isThere bool) bool {
	if o == nil || !isThere || o.options.Mode != Lease {
		return o.Leads()
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.leased.Has(node)
}

// MayServe reports whether the kwok in this replica's Pod may manage a node. Without leases, it may.
func (o *Owner) MayServe(node string) bool {
	return o == nil || o.options.Mode != Lease || o.Acts(node, true)
}

// Leads reports whether this replica acts for what belongs to no single node.
func (o *Owner) Leads() bool { return o == nil || o.leads.Load() }

// Synced is done when it is known which leases the kwok in our Pod holds.
func (o *Owner) Synced() []cache.DoneChecker {
	if o == nil || o.options.Mode != Lease {
		return nil
	}
	return []cache.DoneChecker{leasesListed(o.listed)}
}

// Run takes part in the election until ctx ends, and then releases what it holds.
func (o *Owner) Run(ctx context.Context) {
	var running sync.WaitGroup
	if o.options.Mode != None {
		running.Go(func() { o.runElection(ctx) })
	}
	if o.options.Mode == Lease {
		running.Go(func() { wait.JitterUntilWithContext(ctx, o.listLeases, listPeriod, 1, true) })
	}
	running.Wait()
}

// Metrics is the collector of the Owner's metrics.
func (o *Owner) Metrics() prometheus.Collector {
	all := prometheus.NewRegistry()
	all.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kwok_dra_leads", Help: "1 if this replica is the leader, which acts for what belongs to no single node, else 0.",
	}, func() float64 {
		if o.Leads() {
			return 1
		}
		return 0
	}))
	if o.options.Mode == Lease {
		all.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kwok_dra_held_nodes", Help: "Nodes that this replica acts for because its kwok holds their leases. Only with --shard-mode=lease.",
		}, func() float64 {
			o.mu.RLock()
			defer o.mu.RUnlock()
			return float64(len(o.leased))
		}))
	}
	return all
}

// Recorder records events about what belongs to no single node. Only the leader records them, since all replicas see
// the same.
func (o *Owner) Recorder(to record.EventRecorder) record.EventRecorder {
	return &leaderRecorder{owner: o, to: to}
}

type leaderRecorder struct {
	owner *Owner
	to    record.EventRecorder
}

func (r *leaderRecorder) Event(object runtime.Object, eventType, reason, message string) {
	if r.owner.Leads() {
		r.to.Event(object, eventType, reason, message)
	}
}

func (r *leaderRecorder) Eventf(object runtime.Object, eventType, reason, messageFmt string, args ...any) {
	if r.owner.Leads() {
		r.to.Eventf(object, eventType, reason, messageFmt, args...)
	}
}

func (r *leaderRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventType, reason, messageFmt string, args ...any) {
	if r.owner.Leads() {
		r.to.AnnotatedEventf(object, annotations, eventType, reason, messageFmt, args...)
	}
}
