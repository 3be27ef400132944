package expectations

import (
	"time"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

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
