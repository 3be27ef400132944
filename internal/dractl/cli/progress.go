package cli

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// patience is how long a command may take before it shows progress.
	patience = 2 * time.Second
	// again is the time between two lines of progress.
	again = 5 * time.Second
)

// Progress says on ErrOut what a command does, if that takes long.
type Progress struct {
	done    atomic.Int64
	stop    func()
	stopped sync.WaitGroup
}

// Progress starts showing the progress of something that has that many parts, or 0 if the number is unknown.
// Done ends it.
func (s Streams) Progress(what string, parts int) *Progress {
	p := &Progress{}
	stopping := make(chan struct{})
	p.stop = sync.OnceFunc(func() { close(stopping) })
	p.stopped.Go(func() {
		for started, wait := time.Now(), patience; ; wait = again {
			select {
			case <-stopping:
				return
			case <-time.After(wait):
			}
			state := fmt.Sprintf("%.0f s", time.Since(started).Seconds())
			if parts > 0 {
				state = fmt.Sprintf("%d of %d, %s", p.done.Load(), parts, state)
			}
			s.Tell("%s ... %s\n", what, state)
		}
	})
	return p
}

// Step is one part that is done.
func (p *Progress) Step() { p.done.Add(1) }

// Done ends the progress. Nothing is written after it returns.
func (p *Progress) Done() {
	p.stop()
	p.stopped.Wait()
}
