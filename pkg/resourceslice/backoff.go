package resourceslice

import (
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

const (
	// freeRounds is how often in a row what others did to the slices of a key is
	// undone at once; after that the time between doubles from firstRound to
	// lastRound.
	freeRounds = 3
	firstRound = 100 * time.Millisecond
	lastRound  = 30 * time.Second
)

// conflictBackoff keeps the Publisher and other writers from undoing each other's
// writes at full speed. Two replicas would, if one does not see the newest Node or
// configuration yet: each plans correctly from what it sees.
type conflictBackoff struct {
	rounds *flowcontrol.Backoff
	// foreign has the keys of which others have changed slices, and nothing else has
	// changed since.
	foreign sync.Map
}

// reset notes that the slices are as they should be, or that what they are made from
// has changed, which is written at once.
func (b *conflictBackoff) reset(key plan.Key) {
	b.foreign.Delete(key)
}

// wait is how long writes have to wait at most.
func (b *conflictBackoff) wait(key plan.Key) time.Duration {
	wait := b.rounds.Get(key.String())
	_, foreign := b.foreign.Load(key)
	if !foreign || wait < firstRound || !b.rounds.IsInBackOffSinceUpdate(key.String(), time.Now()) {
		return 0
	}
	return wait
}

// next notes that what others did, if they did, is undone.
func (b *conflictBackoff) next(key plan.Key) {
	if _, foreign := b.foreign.LoadAndDelete(key); foreign {
		b.rounds.Next(key.String(), time.Now())
		b.rounds.GC()
	}
}
