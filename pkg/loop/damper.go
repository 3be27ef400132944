package loop

import (
	"sync"
	"time"
)

// Damper calls a function for keys that are added: at once for the first, and then no sooner than
// a pause after the last call. One call stands for all that were added meanwhile.
type Damper[K comparable] struct {
	pause time.Duration
	call  func(key K)

	mu sync.Mutex
	// resting has the keys whose pause has not ended, and whether they were added since. The timer of
	// the pause deletes them.
	resting map[K]bool
}

// NewDamper makes a Damper.
func NewDamper[K comparable](pause time.Duration, call func(key K)) *Damper[K] {
	return &Damper[K]{pause: pause, call: call, resting: map[K]bool{}}
}

// Add calls the function for a key, now or when the key's pause ends.
func (d *Damper[K]) Add(key K) {
	d.mu.Lock()
	_, rests := d.resting[key]
	d.resting[key] = rests
	d.mu.Unlock()
	if !rests {
		d.call(key)
		time.AfterFunc(d.pause, func() { d.endPause(key) })
	}
}

func (d *Damper[K]) endPause(key K) {
	d.mu.Lock()
	added := d.resting[key]
	delete(d.resting, key)
	d.mu.Unlock()
	if added {
		d.Add(key)
	}
}
