package claims

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Waiting is a Pod on a fake node whose claims are not prepared yet.
type Waiting struct {
	Pod *corev1.Pod
	// Failure is why the last try failed, and Retry when the next one is. Both are empty where
	// none has failed.
	Failure string
	Retry   time.Time
}

// Waiting are the Pods that wait, in no order. Those that another replica acts for are left out.
func (c *Controller) Waiting() []Waiting {
	var all []Waiting
	for key, why := range c.observer.states.allWaiting() {
		if pod := c.observer.Caches.Pods.Get(key); pod != nil {
			all = append(all, Waiting{Pod: pod, Failure: why.failure, Retry: why.retry})
		}
	}
	return all
}

// allWaiting is why each Pod waits.
func (s *states) allWaiting() map[types.NamespacedName]waiting {
	uids := map[types.UID]types.NamespacedName{}
	s.pods.Range(func(key, state any) bool {
		uids[state.(*podState).uid] = key.(types.NamespacedName)
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[types.NamespacedName]waiting{}
	for uid, why := range s.waiting {
		if key, known := uids[uid]; known {
			all[key] = why
		}
	}
	return all
}
