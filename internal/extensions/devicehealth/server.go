package devicehealth

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// RetryInterval is how often kwok-dra writes the health of devices again although the API server drops it, since an
// upgrade may have turned its feature gate on, and retryPods how many Pods it tries.
const (
	RetryInterval = 15 * time.Minute
	retryPods     = 10
)

// Server knows whether the API server stores health. The zero value takes it to do so until it has answered.
type Server struct {
	// drops says that the API server drops allocatedResourcesStatus, since its feature gate
	// ResourceHealthStatus is off. It is reset each RetryInterval, to try again.
	drops, isDropLogged atomic.Bool
	enqueue             func(count int)
}

// OnChange calls enqueue with how many Pods, at most, to look at again, since the API server may store more now. Call it
// before Run.
func (s *Server) OnChange(enqueue func(count int)) { s.enqueue = enqueue }

// Shown is what Pods show now. It is nil while the API server drops it.
func (s *Server) Shown() plan.Health {
	if s.drops.Load() {
		return nil
	}
	return Shown{}
}

// Stored looks at the API server's answer to a patch with health.
func (s *Server) Stored(ctx context.Context, pod *corev1.Pod) {
	logger := klog.FromContext(ctx)
	showsHealth := func(status corev1.ContainerStatus) bool { return len(status.AllocatedResourcesStatus) > 0 }
	switch statuses := pod.Status.ContainerStatuses; {
	case len(statuses) == 0:
	case !slices.ContainsFunc(statuses, showsHealth):
		s.drops.Store(true)
		if !s.isDropLogged.Swap(true) {
			logger.Info("The API server drops allocatedResourcesStatus of Pods; its feature gate ResourceHealthStatus is off")
		}
	case s.isDropLogged.Swap(false):
		logger.Info("The API server stores allocatedResourcesStatus of Pods")
		s.enqueue(math.MaxInt)
	}
}

// Run tries again what the API server drops, until ctx ends.
func (s *Server) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		if s.drops.Swap(false) {
			s.enqueue(retryPods)
		}
	}, RetryInterval)
}
