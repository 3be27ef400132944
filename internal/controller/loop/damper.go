package loop

import (
	"sync"
	"time"
)

// Damper calls a function for each key that is added: at once if it was not called for the key
// lately, and otherwise when a pause after the last call ends. One call stands for all
// additions meanwhile.
type Damper[K comparable] struct {
	pause time.Duration
	call  func(key K)

	mu sync.Mutex
	// resting has the keys whose pause has not ended, and whether they were added since. The
	// timer of the pause deletes them.
	resting map[K]bool
}

// NewDamper makes a Damper.
func NewDamper[K comparable](pause time.Duration, call func(key K)) *Damper[K] {
	return &Damper[K]{pause: pause, call: call, resting: map[K]bool{}}
}

// Add calls the function for a key, now or when the key's pause ends.
func (d *Damper[K]) Add(key K) {
	d.mu.Lock()
	_, isResting := d.resting[key]
	d.resting[key] = isResting
	d.mu.Unlock()
	if !isResting {
		d.call(key)
		time.AfterFunc(d.pause, func() { d.endPause(key) })
	}
}

func (d *Damper[K]) endPause(key K) {
	d.mu.Lock()
	wasAdded := d.resting[key]
	delete(d.resting, key)
	d.mu.Unlock()
	if wasAdded {
		d.Add(key)
	}
}
