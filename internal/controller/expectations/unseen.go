package expectations

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// Deadlines requeues a key whose write the cache does not see within Limit: the event that
// would requeue it may never come.
type Deadlines[K comparable] struct {
	// since has the time of the first write for each key.
	since sync.Map
}

// Begin notes a write for a key. The deadline counts from the first write.
func (d *Deadlines[K]) Begin(key K) { d.since.LoadOrStore(key, time.Now()) }

// End notes that the cache has seen all writes for a key.
func (d *Deadlines[K]) End(key K) { d.since.Delete(key) }

// Run requeues each key once its deadline has passed, until ctx ends.
func (d *Deadlines[K]) Run(ctx context.Context, requeue func(key K)) {
	wait.UntilWithContext(ctx, func(context.Context) {
		for key, since := range d.since.Range {
			if time.Since(since.(time.Time)) >= Limit && d.since.CompareAndDelete(key, since) {
				requeue(key.(K))
			}
		}
	}, Limit/2)
}

// Unseen has the API server's answer to the last write of an object until the cache has seen
// that write.
type Unseen[T answer] struct {
	answer T
	since  time.Time
}

// answer is an object, or a part of it.
type answer interface {
	comparable
	GetResourceVersion() string
}

// Version is an answer of which only the resource version is kept.
type Version string

// GetResourceVersion is the version.
func (v Version) GetResourceVersion() string { return string(v) }

// Answered notes what the API server has answered to a write or a read.
func (u *Unseen[T]) Answered(answer T) { u.answer, u.since = answer, time.Now() }

// Answer is the last answer, or zero if the cache has seen that write.
func (u *Unseen[T]) Answer() T { return u.answer }

// Freshness is how the cached object compares to the answer.
type Freshness int

// How fresh a cached object is.
const (
	// Current means that the cache has seen the write. The answer is dropped.
	Current Freshness = iota
	// Behind means that the cache will see the write soon.
	Behind
	// Doubtful means that the cache has not seen the write within Limit: it is very late, or
	// the write is lost, as when etcd is restored from a backup. What the API server has now
	// counts, whatever its version.
	Doubtful
)

// Compare compares the version of the cached object with the answer.
func (u *Unseen[T]) Compare(version string) Freshness {
	var none T
	switch {
	case u.answer == none:
		return Current
	case !cached.Older(version, u.answer.GetResourceVersion()):
		u.answer = none
		return Current
	case time.Since(u.since) < Limit:
		return Behind
	}
	return Doubtful
}
