package claims

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Waiting is a Pod on a fake node whose claims are not prepared yet.
type Waiting struct {
	Pod *corev1.Pod
	// Failure is why the last try failed, and Retry the time of the next one. Both are empty if nothing has failed.
	Failure string
	Retry   time.Time
}

// Waiting lists the Pods that wait for this replica, in no order.
func (c *Controller) Waiting() []Waiting {
	states := c.observer.states
	states.mu.Lock()
	reasons := slices.Collect(maps.Values(states.waiting))
	states.mu.Unlock()
	var all []Waiting
	for _, why := range reasons {
		if pod := c.observer.Caches.Pods.Get(why.pod); pod != nil {
			all = append(all, Waiting{Pod: pod, Failure: why.failure, Retry: why.retry})
		}
	}
	return all
}
