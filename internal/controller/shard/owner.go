package shard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

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
	return &leaderRecorder{to, o}
}

// leaderRecorder has one method of its own, since nothing in kwok-dra calls the others.
type leaderRecorder struct {
	record.EventRecorder
	owner *Owner
}

func (r *leaderRecorder) Event(object runtime.Object, eventType, reason, message string) {
	if r.owner.Leads() {
		r.EventRecorder.Event(object, eventType, reason, message)
	}
}

// listPeriod is the least time between two lists of leases; it is at most twice as long. So a handover is noticed
// within a tenth of kwok's lease duration. A watch would deliver each renewal: for 10,000 nodes a thousand events per
// second, none of which matters.
const listPeriod = 2 * time.Second

// listTimeout bounds one list. It is generous, since a list that fails changes nothing.
const listTimeout = 30 * time.Second

// listLeases finds out which nodes' leases the kwok in our Pod holds. It ignores whether a lease has expired: until
// another kwok takes it, nobody else acts, and clocks differ. After an error the last list remains in force.
func (o *Owner) listLeases(ctx context.Context) {
	listing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	// Version 0 means that the API server answers from its cache, and with one page.
	all, err := o.options.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(listing, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to list the leases of nodes; retrying", "namespace", corev1.NamespaceNodeLease)
		}
		return
	}
	nodes := sets.New[string]()
	for i := range all.Items {
		// The rest of the identity is new each time that kwok starts.
		if holder := all.Items[i].Spec.HolderIdentity; holder != nil && strings.HasPrefix(*holder, o.options.Host+"_") {
			nodes.Insert(all.Items[i].Name)
		}
	}
	o.mu.Lock()
	isFirst, added := o.leased == nil, nodes.Difference(o.leased)
	o.leased = nodes
	o.mu.Unlock()
	for node := range added {
		for _, enqueue := range o.onLeased {
			enqueue(node)
		}
	}
	if isFirst {
		close(o.listed)
	}
}

// leasesListed is a cache.DoneChecker that is done after the first list.
type leasesListed chan struct{}

// Name implements cache.DoneChecker.
func (leasesListed) Name() string { return "leases of nodes" }

// Done implements cache.DoneChecker.
func (l leasesListed) Done() <-chan struct{} { return l }

// The times of the election are those of Kubernetes' own controllers.
const (
	// leaseDuration is how long the others wait for a leader that no longer renews.
	leaseDuration = 15 * time.Second
	// renewDeadline is how long a leader that cannot renew still acts as the leader.
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// runElection is a candidate until ctx ends. A leader that has lost the lease is a candidate again: it has continued to
// watch, so its caches are up to date.
func (o *Owner) runElection(ctx context.Context) {
	// A container that is started again in the same Pod is another candidate.
	identity := o.options.Host + "_" + uuid.NewString()
	election := leaderelection.LeaderElectionConfig{
		Name: o.options.Name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.options.Namespace, Name: o.options.Name},
			Client:     o.options.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				klog.FromContext(ctx).Info("Became leader", "identity", identity)
				if ctx.Err() != nil {
					return // runs concurrently with OnStoppedLeading
				}
				o.leads.Store(true)
				for _, enqueueAll := range o.onLead {
					enqueueAll()
				}
			},
			OnStoppedLeading: func() { o.leads.Store(false) },
		},
	}
	for ctx.Err() == nil {
		leaderelection.RunOrDie(ctx, election)
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("Lost leadership")
		}
	}
}
