package shard

import (
	"context"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

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
