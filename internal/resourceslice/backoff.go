package resourceslice

import (
	"time"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

const (
	// freeRounds is how often in a row kwok-dra undoes at once what others did to the slices
	// of a key; after that the time between doubles from firstRound to lastRound.
	freeRounds = 3
	firstRound = 100 * time.Millisecond
	lastRound  = 30 * time.Second
	// lastSharedRound is the lastRound of a pool that nodes share: an installation of a
	// version without records undoes the same for ever.
	lastSharedRound = 30 * time.Minute
)

// foreignWriteBackoff is how long writes that undo those of others have to wait, at most, since
// the others undo ours. If it is 0, another round begins.
func (m *memory) foreignWriteBackoff(key facts.SlicesKey) time.Duration {
	if !m.entryOf(key).hasForeignWrites {
		return 0 // the writes of another driver have begun a round
	}
	rounds := m.rounds
	if key.IsShared() {
		rounds = m.sharedRounds
	}
	wait := rounds.Get(key.String())
	if wait >= firstRound && rounds.IsInBackOffSinceUpdate(key.String(), time.Now()) {
		return wait
	}
	m.forgetForeignWrites(key)
	rounds.Next(key.String(), time.Now())
	rounds.GC()
	return 0
}
