package expectations

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// Unseen has the API server's answers for objects that are planned one by one, until the cache has seen them; the zero
// value has none. An object is planned again from the answer to each of its writes, so the event of that write says nothing
// new, unless a reconciliation waits for it.
type Unseen[K comparable, T any] struct {
	mu      sync.Mutex
	answers map[K]Answer[T]
}

// Answer is what the API server has answered to the last write or read of an object. The zero value is no answer.
type Answer[T any] struct {
	Content T
	Version string

	since time.Time
	// awaitsEvent says that the event of this version requeues the key.
	awaitsEvent bool
}

// Answered notes an answer. AwaitsEvent says that the event of this version requeues the key; that stays so for later
// versions until the cache has seen one.
func (u *Unseen[K, T]) Answered(key K, content T, version string, awaitsEvent bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answers == nil {
		u.answers = map[K]Answer[T]{}
	}
	u.answers[key] = Answer[T]{content, version, time.Now(), awaitsEvent || u.answers[key].awaitsEvent}
}

// Answer returns the answer that the cache has not seen yet.
func (u *Unseen[K, T]) Answer(key K) Answer[T] {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answers[key]
}

// Forget drops the answer for a key.
func (u *Unseen[K, T]) Forget(key K) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.answers, key)
}

// Postpone has the event of the answer requeue the key. If the cache has seen the answer meanwhile, it requeues the key.
func (u *Unseen[K, T]) Postpone(key K, requeue func(key K)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answer, isUnseen := u.answers[key]
	if !isUnseen {
		requeue(key)
		return
	}
	answer.awaitsEvent = true
	u.answers[key] = answer
}

// Observed notes the resource version in an event. It reports whether the event says nothing new: it is that of the own
// last write, and no reconciliation waits for it.
func (u *Unseen[K, T]) Observed(key K, version string) (isOwn bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answer, isUnseen := u.answers[key]
	if !isUnseen || cached.Older(version, answer.Version) {
		return false
	}
	delete(u.answers, key)
	return version == answer.Version && !answer.awaitsEvent
}

// Run requeues each key whose answer the cache does not see within Limit, until ctx ends: the event that would requeue it
// may never come.
func (u *Unseen[K, T]) Run(ctx context.Context, requeue func(key K)) {
	wait.UntilWithContext(ctx, func(context.Context) {
		u.mu.Lock()
		defer u.mu.Unlock()
		for key, answer := range u.answers {
			if time.Since(answer.since) >= Limit {
				requeue(key)
			}
		}
	}, Limit/2)
}

// Freshness is how the cached object compares to the answer.
type Freshness int

// How fresh a cached object is.
const (
	// Current means that the cache has seen the answer.
	Current Freshness = iota
	// Behind means that the cache will see the answer soon.
	Behind
	// Doubtful means that the cache has not seen the answer within Limit: it is very late, or the write is lost, as when
	// etcd is restored from a backup. What the API server has now counts, whatever its version.
	Doubtful
)

// Compare compares the version of the cached object with the answer.
func (a *Answer[T]) Compare(version string) Freshness {
	switch {
	case a.Version == "" || !cached.Older(version, a.Version):
		return Current
	case time.Since(a.since) < Limit:
		return Behind
	}
	return Doubtful
}
