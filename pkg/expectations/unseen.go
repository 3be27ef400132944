package expectations

import "github.com/kwok-dra/kwok-dra/pkg/cached"

// Unseen is the API server's answer to the last write of an object, until the cache
// has seen that write.
type Unseen[T answer] struct {
	// Answer is zero where there is none.
	Answer T
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

// Behind reports whether a cache that has that version of the object is older than the
// answer. Where it is not, the answer is dropped.
func (u *Unseen[T]) Behind(version string) bool {
	var none T
	if u.Answer == none {
		return false
	}
	if cached.Older(version, u.Answer.GetResourceVersion()) {
		return true
	}
	u.Answer = none
	return false
}
