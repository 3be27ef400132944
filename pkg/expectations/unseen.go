package expectations

import (
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// Unseen is the API server's answer to the last write of an object, until the cache
// has seen that write.
type Unseen[T answer] struct {
	answer T
	since  time.Time
}

// answer is an object, or what is kept of it.
type answer interface {
	comparable
	GetResourceVersion() string
}

// Version is an answer of which only the resource version is kept.
type Version string

// GetResourceVersion is the version.
func (v Version) GetResourceVersion() string { return string(v) }

// Answered takes what the API server has answered to a write or a read.
func (u *Unseen[T]) Answered(answer T) { u.answer, u.since = answer, time.Now() }

// Answer is the last answer, or zero where the cache has seen that write.
func (u *Unseen[T]) Answer() T { return u.answer }

// Freshness is how what a cache has of an object compares to the answer.
type Freshness int

// What a cache can be.
const (
	// Current is a cache that has seen the write. The answer is dropped.
	Current Freshness = iota
	// Behind is a cache that sees the write soon.
	Behind
	// Doubtful is a cache that has not seen the write within Limit: it is very late, or the write is lost, as when
	// etcd is restored from a backup. What the API server has now counts, whatever its version.
	Doubtful
)

// Compare compares what a cache has, which is of that version.
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
