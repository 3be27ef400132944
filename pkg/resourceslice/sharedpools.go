package resourceslice

import (
	"maps"
	"slices"
	"sync"

	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// sharedPools remember the pools that nodes share.
type sharedPools struct {
	mu sync.Mutex
	// witnesses has each pool that a template has had exist since the process began and
	// that may have slices, with the node that requires it.
	witnesses map[plan.Key]witness
}

// witness is a node that requires a shared pool, or, until one is found, the node
// that is being examined. The zero value is none.
type witness struct {
	node  string
	found bool
}

// setExists notes whether a template has the pool exist, and whether there are slices.
// It reports whether these may be of a document that is refused, since no template has
// had the pool exist since the process began.
func (s *sharedPools) setExists(key plan.Key, inTemplate, inSlices bool) (unknown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.witnesses[key]
	switch {
	case inTemplate:
		s.witnesses[key] = last
	case inSlices && known:
		s.witnesses[key] = witness{}
	default:
		delete(s.witnesses, key)
	}
	return !inTemplate && inSlices && !known
}

func (s *sharedPools) keys() []plan.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.witnesses))
}

func (s *sharedPools) witness(key plan.Key) witness {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.witnesses[key]
}

func (s *sharedPools) setWitness(key plan.Key, w witness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.witnesses[key]; known {
		s.witnesses[key] = w
	}
}
