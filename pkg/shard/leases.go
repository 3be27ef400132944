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

// Leases are listed again after one to two of these periods, so that a handover is
// noticed within a tenth of kwok's lease duration. A watch would deliver each
// renewal: for 10,000 nodes a thousand events per second, and none of them matters.
const listPeriod = 2 * time.Second

// listTimeout bounds one list. It is generous: a list that fails changes nothing.
const listTimeout = 30 * time.Second

// leases observes which nodes' leases the kwok in our Pod holds. It ignores
// whether a lease has expired: until another kwok takes it, nobody else acts, and
// clocks differ.
type leases struct {
	client kubernetes.Interface
	// prefix begins the identity of our kwok. The rest of the identity is new each
	// time that kwok starts.
	prefix string
	// setHeld is called with the nodes whose leases our kwok holds, after each list.
	setHeld func(nodes sets.Set[string])

	synced   chan struct{}
	markOnce sync.Once
}

// sync lists the leases once. After an error the last list remains in force.
func (l *leases) sync(ctx context.Context) {
	held, err := l.list(ctx)
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot list the leases of nodes, trying again")
		}
		return
	}
	l.setHeld(held)
	l.markOnce.Do(func() { close(l.synced) })
}

func (l *leases) list(ctx context.Context) (sets.Set[string], error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	// Version 0 means that the API server answers from its cache, and with one page.
	all, err := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list leases in namespace %s: %w", corev1.NamespaceNodeLease, err)
	}
	held := sets.New[string]()
	for i := range all.Items {
		if holder := all.Items[i].Spec.HolderIdentity; holder != nil && strings.HasPrefix(*holder, l.prefix) {
			held.Insert(all.Items[i].Name)
		}
	}
	return held, nil
}

// Name implements cache.DoneChecker.
func (l *leases) Name() string { return "leases of nodes" }

// Done implements cache.DoneChecker: it is closed after the first list.
func (l *leases) Done() <-chan struct{} { return l.synced }
