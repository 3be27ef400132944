package expectations

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// Limit bounds the wait for the cache. A write whose event never comes must not block its key
// for ever: the watch broke and the object was deleted before it was back, or etcd was
// restored from a backup and has older versions now.
const Limit = 30 * time.Second

// Expectations has the writes that the cache has not seen yet. K is the key that is
// reconciled, and O identifies the objects that are written for it.
type Expectations[K, O comparable] struct {
	deadlines Deadlines[K]

	mu sync.Mutex
	// writes has the keys with at least one write.
	writes map[K]map[O]*write
	// postponed has the keys whose reconciliation waits for the writes.
	postponed sets.Set[K]
}

// write is a write in progress, or one that waits for its event.
type write struct {
	// answered is the resource version in the API server's answer, or "" while the write is in
	// progress.
	answered string
	// seen is the newest resource version in the cache since the write began, or "".
	seen string
}

// New makes Expectations.
func New[K, O comparable]() *Expectations[K, O] {
	return &Expectations[K, O]{writes: map[K]map[O]*write{}, postponed: sets.New[K]()}
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
	if e.writes[key] == nil {
		e.writes[key] = map[O]*write{}
	}
	e.writes[key][object] = &write{}
	e.deadlines.since.LoadOrStore(key, time.Now()) // it counts from the first write
}

// Answered notes the resource version in the API server's answer, or "" if the write failed.
// It reports whether the key must be reconciled because someone else has changed the object
// meanwhile.
func (e *Expectations[K, O]) Answered(key K, object O, version string) (requeue bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.writes[key][object]
	if w == nil {
		return false
	}
	w.answered = version
	if version != "" && (w.seen == "" || cached.Older(w.seen, version)) {
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
	w := e.writes[key][object]
	switch {
	case w == nil:
		return true, true
	case w.answered == "":
		w.seen = version
		return false, false
	case cached.Older(version, w.answered):
		return false, false
	}
	isForeign = version != w.answered
	return e.dropWrite(key, object) || isForeign, isForeign
}

// Deleted notes that an object has gone from the cache, and reports whether someone else has
// deleted it.
func (e *Expectations[K, O]) Deleted(key K, object O) (isForeign bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writes[key][object] == nil {
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
	if e.writes[key] == nil {
		return 0
	}
	if since, isWaiting := e.deadlines.since.Load(key); isWaiting {
		if left := Limit - time.Since(since.(time.Time)); left > 0 {
			e.postponed.Insert(key)
			return left
		}
	}
	e.dropKey(key)
	return 0
}

// dropWrite drops a write, and reports whether a reconciliation was waiting for it alone.
func (e *Expectations[K, O]) dropWrite(key K, object O) bool {
	delete(e.writes[key], object)
	isLast, wasPostponed := len(e.writes[key]) == 0, e.postponed.Has(key)
	if isLast {
		e.dropKey(key)
	}
	return isLast && wasPostponed
}

func (e *Expectations[K, O]) dropKey(key K) {
	delete(e.writes, key)
	e.postponed.Delete(key)
	e.deadlines.End(key)
}
