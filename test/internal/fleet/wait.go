package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// patience is how long a wait goes on without anything having changed.
const patience = time.Minute

// progressEvery is how often a wait tells how far it is.
const progressEvery = 5 * time.Second

// watched is what is known of a cluster by watching it, and wakes those who wait
// for a change.
type watched struct {
	// Progress, if there is one, is told now and then how far a wait is.
	Progress func(what string, have, want int)

	mu     sync.Mutex
	change chan struct{}
}

func newWatched() watched {
	return watched{change: make(chan struct{})}
}

// wakeWaiters wakes those who wait. The lock must be held.
func (w *watched) wakeWaiters() {
	close(w.change)
	w.change = make(chan struct{})
}

// awaitCount waits until there are as many as wanted. It goes on for as long as there
// come more, or fewer. Have is called with the lock held.
func (w *watched) awaitCount(ctx context.Context, what string, want int, have func() int) error {
	start := time.Now()
	last := -1
	idle, tell := time.NewTimer(patience), time.NewTicker(progressEvery)
	defer idle.Stop()
	defer tell.Stop()
	for {
		w.mu.Lock()
		now, change := have(), w.change
		w.mu.Unlock()
		if now == want {
			return nil
		}
		if now != last {
			last = now
			idle.Reset(patience)
		}
		select {
		case <-change:
		case <-tell.C:
			if w.Progress != nil {
				w.Progress(what, now, want)
			}
		case <-idle.C:
			return fmt.Errorf("wait for %d %s: there are %d after %s, and for the last %s nothing has changed",
				want, what, now, time.Since(start).Round(time.Second), patience)
		case <-ctx.Done():
			return fmt.Errorf("wait for %d %s, there are %d: %w", want, what, now, ctx.Err())
		}
	}
}

// Pause waits.
func Pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
