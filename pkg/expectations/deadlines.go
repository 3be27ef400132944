package expectations

import (
	"context"
	"sync"
	"time"
)

// Deadlines have the keys with own writes that the cache has not seen yet. They requeue a key whose write the cache
// does not see within Limit: the event that would do so may never come.
type Deadlines[K comparable] struct {
	mu    sync.Mutex
	since map[K]time.Time
}

// Begin notes a write for a key. The deadline is that of the first write.
func (d *Deadlines[K]) Begin(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since == nil {
		d.since = map[K]time.Time{}
	}
	if _, begun := d.since[key]; !begun {
		d.since[key] = time.Now()
	}
}

// End notes that the cache has seen all writes for a key.
func (d *Deadlines[K]) End(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, key)
}

// left returns how long the key has at most, or 0 where it has no deadline or that is over.
func (d *Deadlines[K]) left(key K) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, begun := d.since[key]
	if !begun {
		return 0
	}
	return max(0, Limit-time.Since(since))
}

// Run requeues each key once its deadline is over, until ctx ends.
func (d *Deadlines[K]) Run(ctx context.Context, requeue func(key K)) {
	ticker := time.NewTicker(Limit / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, key := range d.takeOverdue() {
			requeue(key)
		}
	}
}

// takeOverdue returns the keys whose deadline is over, and forgets them.
func (d *Deadlines[K]) takeOverdue() (overdue []K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, since := range d.since {
		if time.Since(since) >= Limit {
			overdue = append(overdue, key)
			delete(d.since, key)
		}
	}
	return overdue
}
