package shard

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// leases follows which nodes' leases the kwok in our Pod holds. It ignores
// whether a lease has expired: until another kwok takes it, nobody else acts, and
// clocks differ.
type leases struct {
	informer cache.TypedSharedIndexInformer[*observedLease]
	synced   cache.DoneChecker
}

// observedLease is what the cache keeps of a lease. Each of a fleet's leases
// changes every few seconds, and hardly ever in this.
type observedLease struct {
	cached.Meta
	ours bool
}

// newLeases calls held with each node whose lease the kwok on the host gains or
// loses.
func newLeases(client kubernetes.Interface, host string, held func(node string, ours bool)) (*leases, error) {
	informer := coordinationinformers.NewLeaseInformer(client, corev1.NamespaceNodeLease, 0, nil)
	// What follows in the name of a holder is new each time that kwok starts.
	prefix := host + "_"
	cached.MustTransform(informer, func(object any) (any, error) {
		if lease, is := object.(*coordinationv1.Lease); is {
			return observeLease(lease, prefix), nil
		}
		return object, nil
	})
	l := &leases{informer: cache.NewTypedSharedIndexInformer[*observedLease](informer)}
	handler, err := l.informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*observedLease]{
		AddFunc: func(lease *observedLease) { held(lease.Name, lease.ours) },
		UpdateFunc: func(old, lease *observedLease) {
			if old.ours != lease.ours {
				held(lease.Name, lease.ours)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observedLease]) { held(deleted.GetObjectName().Name, false) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch the leases of nodes: %w", err)
	}
	l.synced = handler.HasSyncedChecker()
	return l, nil
}

func observeLease(lease *coordinationv1.Lease, prefix string) *observedLease {
	return &observedLease{
		Meta: cached.MetaOf(lease),
		ours: lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, prefix),
	}
}

func (l *leases) run(ctx context.Context) {
	l.informer.RunWithContext(ctx)
}
