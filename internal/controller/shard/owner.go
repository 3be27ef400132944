package shard

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

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
	options  Options
	onLeased []func(node string)
	onLead   []func()
	// listed is closed after the first list of the leases.
	listed chan struct{}

	mu    sync.RWMutex
	leads bool
	// leased are the nodes whose lease the kwok in our Pod holds. It is nil before the first list.
	leased sets.Set[string]
}

// New makes an Owner; Run starts it.
func New(o Options) *Owner {
	return &Owner{options: o, leads: o.Mode == None, listed: make(chan struct{})}
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
	return o.options.Installation
}

// Acts reports whether this replica acts for a node and for what belongs to it alone. The
// leader acts for what is left of a node that is deleted or not fake.
func (o *Owner) Acts(node string, isThere bool) bool {
	if o == nil {
		return true
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	if isThere && o.options.Mode == Lease {
		return o.leased.Has(node)
	}
	return o.leads
}

// MayServe reports whether the kwok in this replica's Pod may manage a node. Without leases,
// it may.
func (o *Owner) MayServe(node string) bool {
	return o == nil || o.options.Mode != Lease || o.Acts(node, true)
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
