package shard

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

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
