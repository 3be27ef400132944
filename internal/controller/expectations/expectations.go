package expectations

import (
	"context"
	"sync"
	"time"
)

// Limit bounds the wait for the cache. A write whose event never comes must not block its key
// for ever: the watch broke and the object was deleted before it was back, or etcd was
// restored from a backup and has older versions now.
const Limit = 30 * time.Second

// Expectations has the writes that the cache has not seen yet. K is the key that is
// reconciled, and O identifies the objects that are written for it.
type Expectations[K, O comparable] struct {
	deadlines Deadlines[K]

	mu   sync.Mutex
	keys map[K]*expected[O]
}

// expected has the writes for a key. There is at least one.
type expected[O comparable] struct {
	writes map[O]*write
	// hasPostponed says that a reconciliation was postponed.
	hasPostponed bool
}

// write is a write in progress, or one that waits for its event.
type write struct {
	// The answer is zero while the write is in progress.
	Unseen[Version]
	// seen is the newest resource version in the cache since the write began.
	seen string
}

// New makes Expectations.
func New[K, O comparable]() *Expectations[K, O] {
	return &Expectations[K, O]{keys: map[K]*expected[O]{}}
}

// Run requeues each key with writes that the cache has not seen within Limit, until ctx ends.
func (e *Expectations[K, O]) Run(ctx context.Context, requeue func(key K)) {
	e.deadlines.Run(ctx, requeue)
}

// Expect notes that an object is about to be written or deleted. Answered must follow, except
// after a deletion that succeeds: that ends with Deleted.
func (e *Expectations[K, O]) Expect(key K, object O) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys[key] == nil {
		e.keys[key] = &expected[O]{writes: map[O]*write{}}
	}
	e.deadlines.Begin(key)
	e.keys[key].writes[object] = &write{}
}

// Answered notes the resource version in the API server's answer, or "" if the write failed.
// It reports whether the key must be reconciled because someone else has changed the object
// meanwhile.
func (e *Expectations[K, O]) Answered(key K, object O, version string) (requeue bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.expectedWrite(key, object)
	if w == nil {
		return false
	}
	w.Answered(Version(version))
	if version != "" && (w.seen == "" || w.Compare(w.seen) != Current) {
		return false
	}
	e.dropWrite(key, object)
	return w.seen != version
}

// Observed notes the resource version in an event. It reports whether the key must be
// reconciled, since someone else has changed the object or a reconciliation was postponed,
// and whether it was someone else.
func (e *Expectations[K, O]) Observed(key K, object O, version string) (requeue, isForeign bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.expectedWrite(key, object)
	if w == nil {
		return true, true
	}
	answer := w.Answer()
	switch {
	case answer == "":
		w.seen = version
		return false, false
	case w.Compare(version) != Current:
		return false, false
	}
	isForeign = version != string(answer)
	return e.dropWrite(key, object) || isForeign, isForeign
}

// Deleted notes that an object has gone from the cache, and reports whether someone else has
// deleted it.
func (e *Expectations[K, O]) Deleted(key K, object O) (isForeign bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.expectedWrite(key, object) == nil {
		return true
	}
	e.dropWrite(key, object)
	return false
}

// Wait returns how long the key must wait for the cache, at most, or 0. Observed says when the
// wait is over. If it never does, the cache counts as it is: every write fails unless the API
// server has what the cache has.
func (e *Expectations[K, O]) Wait(key K) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.keys[key]
	if expected == nil {
		return 0
	}
	left := e.deadlines.timeLeft(key)
	if left == 0 {
		delete(e.keys, key)
		e.deadlines.End(key)
		return 0
	}
	expected.hasPostponed = true
	return left
}

// expectedWrite returns the write of an object that is expected, or nil.
func (e *Expectations[K, O]) expectedWrite(key K, object O) *write {
	if expected := e.keys[key]; expected != nil {
		return expected.writes[object]
	}
	return nil
}

// dropWrite drops a write, and reports whether a reconciliation was waiting for it alone.
func (e *Expectations[K, O]) dropWrite(key K, object O) bool {
	expected := e.keys[key]
	delete(expected.writes, object)
	if len(expected.writes) > 0 {
		return false
	}
	delete(e.keys, key)
	e.deadlines.End(key)
	return expected.hasPostponed
}

// Deadlines requeues a key whose write the cache does not see within Limit: the event that
// would requeue it may never come.
type Deadlines[K comparable] struct {
	mu    sync.Mutex
	since map[K]time.Time
}

// Begin notes a write for a key. The deadline counts from the first write.
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

// timeLeft is the time until the deadline of a key. It is 0 if that has passed, or if there is
// none.
func (d *Deadlines[K]) timeLeft(key K) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, begun := d.since[key]
	if !begun {
		return 0
	}
	return max(0, Limit-time.Since(since))
}

// Run requeues each key once its deadline has passed, until ctx ends.
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

// takeOverdue removes the keys whose deadline has passed, and returns them.
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
