package resourceslice

import (
	"sync"

	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// sharedPools have, by its facts.SlicesKey, the witness of each pool that nodes share, that a
// template has had exist since the process began, and that may have slices.
type sharedPools struct{ sync.Map }

// witness is a node that requires a shared pool, or, until one is found, the node
// that is being examined. The zero value is none.
type witness struct {
	node  string
	found bool
}

// setExists notes whether a template has the pool exist, and whether there are slices.
// It reports whether these may be of a document that is refused, since no template has
// had the pool exist since the process began.
func (s *sharedPools) setExists(key facts.SlicesKey, inTemplate, inSlices bool) (unknown bool) {
	_, known := s.Load(key)
	switch {
	case inTemplate:
		s.LoadOrStore(key, witness{})
	case inSlices && known:
		s.Store(key, witness{})
	default:
		s.Delete(key)
	}
	return !inTemplate && inSlices && !known
}

func (s *sharedPools) witness(key facts.SlicesKey) witness {
	known, _ := s.Load(key)
	w, _ := known.(witness)
	return w
}
