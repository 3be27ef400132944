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
	var all []Waiting
	for _, why := range c.observer.states.listWaiting() {
		if pod := c.observer.Caches.Pods.Get(why.pod); pod != nil {
			all = append(all, Waiting{Pod: pod, Failure: why.failure, Retry: why.retry})
		}
	}
	return all
}

func (s *account) listWaiting() []waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.waiting))
}
