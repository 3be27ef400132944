package expectations

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// Limit bounds the wait for the cache. A write whose event never comes must not block its key for ever: the watch broke
// and the object was deleted before it was back, or etcd was restored from a backup and has older versions now.
const Limit = 30 * time.Second

// Expectations has the writes that the cache has not seen yet; the zero value has none. K is the key that is
// reconciled, and O identifies the objects that are written for it. Run requeues each key with writes that the cache
// has not seen within Limit.
type Expectations[K, O comparable] struct {
	mu sync.Mutex
	// pending has the keys with at least one write.
	pending map[K]pendingWrites[O]
}

// pendingWrites are the writes for a key.
type pendingWrites[O comparable] struct {
	writes map[O]*write
	// since is the time of the first write, or zero once Run has requeued the key.
	since time.Time
	// isPostponed says that a reconciliation of the key waits for the writes.
	isPostponed bool
}

// write is a write in progress, or one that waits for its event.
type write struct {
	// answered is the resource version in the API server's answer, or "" while the write is in progress.
	answered string
	// seen is the newest resource version in the cache since the write began, or "".
	seen string
}

// Expect notes that an object is about to be written or deleted. Answered must follow, except after a deletion that
// succeeds: that ends with Deleted.
func (e *Expectations[K, O]) Expect(key K, object O) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending == nil {
		e.pending = map[K]pendingWrites[O]{}
	}
	waiting := e.pending[key]
	if waiting.writes == nil {
		waiting.writes = map[O]*write{}
	}
	waiting.writes[object] = &write{}
	if waiting.since.IsZero() {
		waiting.since = time.Now()
	}
	e.pending[key] = waiting
}

// Run requeues each key whose writes the cache does not see within Limit, until ctx ends: the event that would requeue it
// may never come.
func (e *Expectations[K, O]) Run(ctx context.Context, requeue func(key K)) {
	wait.UntilWithContext(ctx, func(context.Context) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for key, waiting := range e.pending {
			if !waiting.since.IsZero() && time.Since(waiting.since) >= Limit {
				waiting.since = time.Time{}
				e.pending[key] = waiting
				requeue(key)
			}
		}
	}, Limit/2)
}

// Answered notes the resource version in the API server's answer, or "" if the write failed. It reports whether the key
// must be reconciled because someone else has changed the object meanwhile.
func (e *Expectations[K, O]) Answered(key K, object O, version string) (requeue bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.pending[key].writes[object]
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

// Observed notes the resource version in an event. It reports whether the key must be reconciled, since someone else
// has changed the object or a reconciliation was postponed, and whether it was someone else.
func (e *Expectations[K, O]) Observed(key K, object O, version string) (requeue, isForeign bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.pending[key].writes[object]
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

// Deleted notes that an object has gone from the cache, and reports whether someone else has deleted it.
func (e *Expectations[K, O]) Deleted(key K, object O) (isForeign bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending[key].writes[object] == nil {
		return true
	}
	e.dropWrite(key, object)
	return false
}

// Wait returns how long the key must wait for the cache, at most, or 0. Observed says when the wait is over. If it
// never does, the cache counts as it is: every write fails unless the API server has what the cache has.
func (e *Expectations[K, O]) Wait(key K) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting, isPending := e.pending[key]
	if !isPending {
		return 0
	}
	if left := Limit - time.Since(waiting.since); left > 0 {
		waiting.isPostponed = true
		e.pending[key] = waiting
		return left
	}
	delete(e.pending, key)
	return 0
}

// dropWrite drops a write, and reports whether a reconciliation was waiting for it alone.
func (e *Expectations[K, O]) dropWrite(key K, object O) bool {
	delete(e.pending[key].writes, object)
	if len(e.pending[key].writes) > 0 {
		return false
	}
	wasPostponed := e.pending[key].isPostponed
	delete(e.pending, key)
	return wasPostponed
}
