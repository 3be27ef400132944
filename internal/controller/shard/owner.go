package shard

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
)

// Mode is how replicas share the work.
type Mode string

const (
	// None means that the only replica acts for everything.
	None Mode = "none"
	// Leader means that an elected replica acts for everything, and the others stand by.
	Leader Mode = "leader"
	// Lease means that each replica acts for the nodes whose lease in kube-node-lease the kwok
	// in its own Pod holds, and an elected one for what belongs to no single node.
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
	installation installation.ID
	// election is nil with mode None, and leases with any mode but Lease.
	election *leaderelection.LeaderElectionConfig
	leases   *leases
	onLeased []func(node string)
	onLead   []func()

	mu    sync.RWMutex
	leads bool
	// leased are the nodes whose lease the kwok in our Pod holds.
	leased sets.Set[string]
}

// New makes an Owner; Run starts it.
func New(o Options) *Owner {
	owner := &Owner{installation: o.Installation, leads: o.Mode == None}
	if o.Mode != None {
		owner.election = newElection(o, owner.setLeads)
	}
	if o.Mode == Lease {
		owner.leases = &leases{client: o.Client, prefix: o.Host + "_", setLeased: owner.setLeased, synced: make(chan struct{})}
	}
	return owner
}

// OnChange calls node with each node that this replica begins to act for, and all when it
// becomes the leader. Call it before Run.
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
	return o.installation
}

// Acts reports whether this replica acts for a node and for what belongs to it alone. The
// leader acts for what is left of a node that is deleted or not fake.
func (o *Owner) Acts(node string, isThere bool) bool {
	if o == nil {
		return true
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	if isThere && o.leases != nil {
		return o.leased.Has(node)
	}
	return o.leads
}

// MayServe reports whether the kwok in this replica's Pod may manage a node. Without leases,
// it may.
func (o *Owner) MayServe(node string) bool {
	return o == nil || o.leases == nil || o.Acts(node, true)
}

// Leads reports whether this replica acts for what belongs to no single node.
func (o *Owner) Leads() bool {
	if o == nil {
		return true
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.leads
}

// Synced is done when it is known which leases the kwok in our Pod holds.
func (o *Owner) Synced() []cache.DoneChecker {
	if o == nil || o.leases == nil {
		return nil
	}
	return []cache.DoneChecker{o.leases}
}

// Run takes part in the election until ctx ends, and then releases what it holds.
func (o *Owner) Run(ctx context.Context) {
	var running sync.WaitGroup
	if o.election != nil {
		running.Go(func() { o.runElection(ctx) })
	}
	if o.leases != nil {
		running.Go(func() { wait.JitterUntilWithContext(ctx, o.leases.syncOnce, listPeriod, 1, true) })
	}
	running.Wait()
}

func (o *Owner) setLeads(leads bool) {
	o.mu.Lock()
	o.leads = leads
	o.mu.Unlock()
	if !leads {
		return
	}
	for _, f := range o.onLead {
		f()
	}
}

func (o *Owner) setLeased(nodes sets.Set[string]) {
	o.mu.Lock()
	added := nodes.Difference(o.leased)
	o.leased = nodes
	o.mu.Unlock()
	for node := range added {
		for _, f := range o.onLeased {
			f(node)
		}
	}
}
