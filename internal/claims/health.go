package claims

import (
	"context"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/observe"
)

// healthRetryInterval is how often kwok-dra writes the health of devices again although the API server drops it, and
// healthRetryPods how many Pods it tries.
const (
	healthRetryInterval = 15 * time.Minute
	healthRetryPods     = 10
)

// recordHealthSupport records whether the API server has stored the health of devices. Once it does, all Pods show theirs.
func (r *podReconciler) recordHealthSupport(ctx context.Context, statuses []corev1.ContainerStatus) {
	showsHealth := func(status corev1.ContainerStatus) bool { return len(status.AllocatedResourcesStatus) > 0 }
	switch {
	case len(statuses) == 0:
	case !slices.ContainsFunc(statuses, showsHealth):
		r.healthDropped.Store(true)
		if !r.healthDropReported.Swap(true) {
			klog.FromContext(ctx).Info("The API server drops allocatedResourcesStatus of Pods; its feature gate ResourceHealthStatus is off")
		}
	case r.healthDropReported.Swap(false):
		klog.FromContext(ctx).Info("The API server stores allocatedResourcesStatus of Pods")
		r.enqueueForHealth(math.MaxInt)
	}
}

// retryHealth shows the health of devices of some Pods again if the API server has dropped it, since an upgrade may have
// turned its feature gate on.
func (r *podReconciler) retryHealth(context.Context) {
	if r.healthDropped.Swap(false) {
		r.enqueueForHealth(healthRetryPods)
	}
}

// enqueueForHealth queues up to count Pods that may have health to show.
func (r *podReconciler) enqueueForHealth(count int) {
	for pod := range r.Caches.Pods.All() {
		if count <= 0 {
			return
		}
		if pod.HasClaims() && !pod.Terminal && r.Caches.Nodes.Has(pod.Node) && r.Owner.Acts(pod.Node, true) {
			r.loop.Add(observe.Key(pod))
			count--
		}
	}
}
