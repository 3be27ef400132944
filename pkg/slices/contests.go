package slices

import (
	"sync"
	"time"
)

const (
	// freeRounds is how often in a row what others did to the slices of a scope is
	// undone at once; after that the time between doubles from firstRound to
	// lastRound.
	freeRounds = 3
	firstRound = 100 * time.Millisecond
	lastRound  = 30 * time.Second
	// contestOver is how long after the last round a contest is over.
	contestOver = 2 * lastRound
)

// contests keep the Publisher and other writers from undoing each other's writes at
// full speed. Two replicas would, if one does not see the newest Node or
// configuration yet: each plans correctly from what it sees.
type contests struct {
	mu     sync.Mutex
	scopes map[scope]*contest
}

type contest struct {
	// disturbed says that others have changed the slices, and that nothing else has
	// changed since.
	disturbed bool
	rounds    int
	last      time.Time
}

func newContests() *contests {
	return &contests{scopes: map[scope]*contest{}}
}

// disturb notes that others have changed slices of the scope.
func (c *contests) disturb(of scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scopes[of] == nil {
		c.scopes[of] = &contest{}
	}
	c.scopes[of].disturbed = true
}

// renew notes that what the slices of the scope are made from has changed, which
// is written at once.
func (c *contests) renew(of scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.scopes[of]; known != nil {
		known.disturbed = false
	}
}

// renewAll does so for all scopes.
func (c *contests) renewAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.scopes {
		known.disturbed = false
	}
}

// left is how long the writes to the scope have to wait.
func (c *contests) left(of scope) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.scopes[of]
	if known == nil || !known.disturbed || known.rounds < freeRounds || time.Since(known.last) > contestOver {
		return 0
	}
	// 2^9 times the first is more than the last.
	wait := min(firstRound<<min(known.rounds-freeRounds, 9), lastRound)
	return max(0, wait-time.Since(known.last))
}

// undo notes that the slices of the scope are written.
func (c *contests) undo(of scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.scopes[of]
	if known == nil || !known.disturbed {
		return
	}
	if time.Since(known.last) > contestOver {
		known.rounds = 0
	}
	known.disturbed = false
	known.rounds++
	known.last = time.Now()
}

// accept notes that the slices of the scope are as they should be.
func (c *contests) accept(of scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.scopes[of]
	switch {
	case known == nil:
	case time.Since(known.last) > contestOver:
		delete(c.scopes, of)
	default:
		known.disturbed = false
	}
}
