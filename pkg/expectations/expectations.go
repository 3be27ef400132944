// Package expectations tells a controller which of its own writes its cache has not
// seen yet. A plan made without them would repeat them. Unseen is for one object that is
// planned by itself, Expectations are for several that are planned together.
//
// No wait for the cache is without an end: Deadlines requeue what waits for longer than Limit.
//
// It does the work of k8s.io/kubernetes/pkg/controller/util/consistency, and also
// tells the events of own writes, which need no reconciliation, from those of others.
package expectations

import (
	"context"
	"sync"
	"time"
)

// Limit bounds the wait for the cache. A write whose event never comes (the watch
// broke, and the object was deleted before it was back; or etcd was restored from a
// backup, and has older versions now) must not block its key forever.
const Limit = 30 * time.Second

// Expectations are the writes that the cache has not seen yet. K is what is
// reconciled, and O tells the objects that are written for it apart.
type Expectations[K, O comparable] struct {
	deadlines Deadlines[K]

	mu   sync.Mutex
	keys map[K]*expected[O]
}

// expected are the writes for a key, of which there is at least one.
type expected[O comparable] struct {
	writes map[O]*write
	// waits says that a reconciliation was put off.
	waits bool
}

// write is a write under way, or one that waits for its event.
type write struct {
	// Its answer is zero while the write is under way.
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

// Expect notes that an object is about to be written or deleted. Answered must
// follow, but not after a deletion that succeeds: it ends with Deleted.
func (e *Expectations[K, O]) Expect(key K, object O) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys[key] == nil {
		e.keys[key] = &expected[O]{writes: map[O]*write{}}
	}
	e.deadlines.Begin(key)
	e.keys[key].writes[object] = &write{}
}

// Answered notes the resource version in the API server's answer, or "" if the write
// failed. It reports whether someone else has changed the object meanwhile, so that
// the key must be reconciled.
func (e *Expectations[K, O]) Answered(key K, object O, version string) (requeue bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.write(key, object)
	if w == nil {
		return false
	}
	w.Answered(Version(version))
	if version != "" && (w.seen == "" || w.Compare(w.seen) != Current) {
		return false
	}
	e.forget(key, object)
	return w.seen != version
}

// Observed notes the resource version in an event. It reports whether the key must be
// reconciled, since someone else has changed the object or a reconciliation was put
// off, and which of the two.
func (e *Expectations[K, O]) Observed(key K, object O, version string) (requeue, foreign bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.write(key, object)
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
	foreign = version != string(answer)
	return e.forget(key, object) || foreign, foreign
}

// Deleted notes that an object has gone from the cache, and reports whether someone
// else has deleted it.
func (e *Expectations[K, O]) Deleted(key K, object O) (foreign bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.write(key, object) == nil {
		return true
	}
	e.forget(key, object)
	return false
}

// Wait returns how much longer the key must wait for the cache at most, or 0. Where
// it must wait, Observed says when that is over. Once it is over without that, the cache counts as it is:
// all writes are on the condition that the API server has what the cache has.
func (e *Expectations[K, O]) Wait(key K) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.keys[key]
	if expected == nil {
		return 0
	}
	left := e.deadlines.left(key)
	if left == 0 {
		delete(e.keys, key)
		e.deadlines.End(key)
		return 0
	}
	expected.waits = true
	return left
}

// write returns the write of an object that is expected, or nil.
func (e *Expectations[K, O]) write(key K, object O) *write {
	if expected := e.keys[key]; expected != nil {
		return expected.writes[object]
	}
	return nil
}

// forget drops a write, and reports whether a reconciliation waits for it alone.
func (e *Expectations[K, O]) forget(key K, object O) bool {
	expected := e.keys[key]
	delete(expected.writes, object)
	if len(expected.writes) > 0 {
		return false
	}
	delete(e.keys, key)
	e.deadlines.End(key)
	return expected.waits
}
