package loop

import (
	"sync"
	"time"
)

// Damp slows a function down: what it returns calls the function for a key at once if it has not
// done so lately, and otherwise when a pause after the last call ends. One call stands for all
// that were due meanwhile.
func Damp[K comparable](pause time.Duration, call func(key K)) func(key K) {
	var mu sync.Mutex
	resting := map[K]bool{} // the keys whose pause has not ended, and whether a call is due for them
	var damped func(key K)
	damped = func(key K) {
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
