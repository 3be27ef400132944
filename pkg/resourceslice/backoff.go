package resourceslice

import (
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

const (
	// freeRounds is how often in a row what others did to the slices of a key is
	// undone at once; after that the time between doubles from firstRound to
	// lastRound.
	freeRounds = 3
	firstRound = 100 * time.Millisecond
	lastRound  = 30 * time.Second
	// lastSharedRound is that of a pool that nodes share: an installation of a version
	// that records nothing undoes the same for ever.
	lastSharedRound = 30 * time.Minute
)

// conflictBackoff keeps the Publisher and other writers from undoing each other's
// writes at full speed. Two replicas would, if one does not see the newest Node or
// configuration yet: each plans correctly from what it sees.
type conflictBackoff struct {
	rounds, sharedRounds *flowcontrol.Backoff
	// foreign has the keys of which others have changed slices, and nothing else has
	// changed since.
	foreign sync.Map
}

func newConflictBackoff() conflictBackoff {
	const first = firstRound >> (freeRounds - 1)
	return conflictBackoff{rounds: flowcontrol.NewBackOff(first, lastRound), sharedRounds: flowcontrol.NewBackOff(first, lastSharedRound)}
}

func (b *conflictBackoff) of(key facts.SlicesKey) *flowcontrol.Backoff {
	if key.Shared() {
		return b.sharedRounds
	}
	return b.rounds
}

// reset notes that the slices are as they should be, or that what they are made from
// has changed, which is written at once.
func (b *conflictBackoff) reset(key facts.SlicesKey) {
	b.foreign.Delete(key)
}

// wait is how long writes have to wait at most.
func (b *conflictBackoff) wait(key facts.SlicesKey) time.Duration {
	wait := b.of(key).Get(key.String())
	_, foreign := b.foreign.Load(key)
	if !foreign || wait < firstRound || !b.of(key).IsInBackOffSinceUpdate(key.String(), time.Now()) {
		return 0
	}
	return wait
}

// next notes that what others did, if they did, is undone.
func (b *conflictBackoff) next(key facts.SlicesKey) {
	if _, foreign := b.foreign.LoadAndDelete(key); foreign {
		b.of(key).Next(key.String(), time.Now())
		b.of(key).GC()
	}
}
