package faults

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// mostLag is how much later than the others the watch of a resource may be.
const mostLag = 2 * time.Second

// lag has a sidecar see the changes of one resource later than those of others, as
// where one watch is served by a slower server.
type lag struct {
	resource string
	length   time.Duration
	over     chan struct{}
}

// newLag draws which resource lags, and how much. Small lags show other things than
// large ones.
func newLag(random *rand.Rand) *lag {
	l := &lag{over: make(chan struct{})}
	l.resource = pick(random, "", "pods", "nodes", "resourceclaims", "resourceclaims", "resourceclaims", "resourceclaims", "resourceslices", "leases", "configmaps", "resourcepooltemplates")
	most := pick(random, 30*time.Millisecond, 300*time.Millisecond, mostLag)
	l.length = time.Duration(random.Int64N(int64(most)))
	return l
}

// end has all come that is on its way.
func (l *lag) end() { close(l.over) }

// event is one of a watch, and when it came.
type event struct {
	frame []byte
	came  time.Time
	err   error
}

// pass passes the events of a watch on, in their order, each as late as it is to be by
// the schedule when its turn comes: most watches were there before the schedule.
func (p *proxy) pass(ctx context.Context, c call, w io.Writer, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return whole(w, response)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for one := range eventsOf(ctx, response) {
		if s := p.schedule.Load(); s != nil && s.lag.resource == c.resource() {
			s.lag.wait(ctx, time.Until(one.came.Add(s.lag.length)))
		}
		if one.err != nil {
			return one.err
		}
		if _, err := w.Write(one.frame); err != nil {
			return err
		}
	}
	return nil
}

// eventsOf reads events as they come, until ctx ends or there are no more.
func eventsOf(ctx context.Context, response *http.Response) <-chan event {
	events := make(chan event, 1<<14) // more than a seed has, so that each is read when it comes
	go func() {
		defer close(events)
		frames := framesOf(response)
		for {
			frame, err := frames.next()
			if errors.Is(err, io.EOF) {
				return
			}
			select {
			case events <- event{frame, time.Now(), err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}

func (l *lag) wait(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-l.over:
	case <-time.After(length):
	}
}
