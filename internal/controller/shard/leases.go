package shard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// listPeriod is the least time between two lists of leases; it is at most twice as long. So a
// handover is noticed within a tenth of kwok's lease duration. A watch would deliver each
// renewal: for 10,000 nodes a thousand events per second, none of which matters.
const listPeriod = 2 * time.Second

// listTimeout bounds one list. It is generous, since a list that fails changes nothing.
const listTimeout = 30 * time.Second

// leases observes which nodes' leases the kwok in our Pod holds. It ignores whether a lease has
// expired: until another kwok takes it, nobody else acts, and clocks differ.
type leases struct {
	client kubernetes.Interface
	// prefix begins the identity of our kwok. The rest of the identity is new each time that
	// kwok starts.
	prefix string
	// setLeased is called with the nodes whose leases our kwok holds, after each list.
	setLeased func(nodes sets.Set[string])

	synced   chan struct{}
	markOnce sync.Once
}

// syncOnce lists the leases. After an error the last list remains in force.
func (l *leases) syncOnce(ctx context.Context) {
	nodes, err := l.listNodes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to list the leases of nodes; retrying")
		}
		return
	}
	l.setLeased(nodes)
	l.markOnce.Do(func() { close(l.synced) })
}

func (l *leases) listNodes(ctx context.Context) (sets.Set[string], error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	// Version 0 means that the API server answers from its cache, and with one page.
	all, err := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list leases in namespace %s: %w", corev1.NamespaceNodeLease, err)
	}
	nodes := sets.New[string]()
	for i := range all.Items {
		if holder := all.Items[i].Spec.HolderIdentity; holder != nil && strings.HasPrefix(*holder, l.prefix) {
			nodes.Insert(all.Items[i].Name)
		}
	}
	return nodes, nil
}

// Name implements cache.DoneChecker.
func (l *leases) Name() string { return "leases of nodes" }

// Done implements cache.DoneChecker. It is closed after the first list.
func (l *leases) Done() <-chan struct{} { return l.synced }
