package claims

import (
	"context"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/observe"
)

// healthAskInterval is how often an API server that drops the health of devices is asked again, and healthAskPods how
// many Pods are looked at for that.
const (
	healthAskInterval = 15 * time.Minute
	healthAskPods     = 10
)

// recordHealthSupport notes whether the API server keeps what was written. Once it does, all Pods show their health.
func (r *podReconciler) recordHealthSupport(ctx context.Context, statuses []corev1.ContainerStatus) {
	shown := func(status corev1.ContainerStatus) bool { return len(status.AllocatedResourcesStatus) > 0 }
	switch {
	case len(statuses) == 0:
	case !slices.ContainsFunc(statuses, shown):
		r.healthDropped.Store(true)
		if !r.healthDropReported.Swap(true) {
			klog.FromContext(ctx).Info("The API server does not keep allocatedResourcesStatus of Pods: its feature gate ResourceHealthStatus is off")
		}
	case r.healthDropReported.Swap(false):
		klog.FromContext(ctx).Info("The API server keeps allocatedResourcesStatus of Pods now")
		r.enqueueForHealth(math.MaxInt)
	}
}

// retryHealthSupport asks an API server that drops the health of devices again and again, until ctx ends: the feature gate may be
// turned on, as by an upgrade.
func (r *podReconciler) retryHealthSupport(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		if r.healthDropped.Swap(false) {
			r.enqueueForHealth(healthAskPods)
		}
	}, healthAskInterval)
}

// enqueueForHealth queues as many Pods that may have health to show, no matter which.
func (r *podReconciler) enqueueForHealth(count int) {
	o := r.observer
	for pod := range o.Caches.Pods.All() {
		if count <= 0 {
			return
		}
		if pod.HasClaims() && !pod.Terminal && o.Caches.Nodes.Has(pod.Node) && o.Owner.Acts(pod.Node, true) {
			r.loop.Add(observe.Key(pod))
			count--
		}
	}
}
