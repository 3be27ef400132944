package kubelet

import (
	"sync"
	"time"
)

// nodeEventInterval is how often changes of a node's plugins requeue its Pods at most, so that a plugin that flaps does not
// cause endless writes. Sockets are scanned at the same pace.
const nodeEventInterval = time.Second

// dampCalls slows a function down: what it returns calls the function for a key at once if it has not done so lately, and
// otherwise when a pause after the last call ends. One call stands for all that were due meanwhile.
func dampCalls(pause time.Duration, call func(key string)) func(key string) {
	var mu sync.Mutex
	resting := map[string]bool{} // the keys whose pause has not ended, and whether a call is due for them
	var damped func(key string)
	damped = func(key string) {
		mu.Lock()
		_, isResting := resting[key]
		resting[key] = isResting
		mu.Unlock()
		if isResting {
			return
		}
		call(key)
		time.AfterFunc(pause, func() {
			mu.Lock()
			isDue := resting[key]
			delete(resting, key)
			mu.Unlock()
			if isDue {
				damped(key)
			}
		})
	}
	return damped
}
