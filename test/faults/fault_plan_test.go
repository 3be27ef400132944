package faults

import (
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// fault is what becomes of a call.
type fault int

const (
	none fault = iota
	// delay passes the call on later.
	delay
	// dropBefore closes the connection before the call has reached the server,
	// dropAfter when it has and the answer has not come back.
	dropBefore
	dropAfter
	// truncate closes the connection in the middle of the answer.
	truncate
	// tooMany, broken and unavailable are answers 429, 500 and 503 of a server that
	// has done nothing; failAfter is the 504 of one that may have.
	tooMany
	broken
	unavailable
	failAfter
	// conflict is a 409 for a write that lost a race.
	conflict
	// expired and expireStream tell a watch that its resource version is too old, by
	// the status 410 or by the first event.
	expired
	expireStream
	// stall holds the events of a watch back, in their order; cutCleanly ends it
	// between two events, cutInFrame within one.
	stall
	cutCleanly
	cutInFrame
	// unknown and unready are the answers 404 and 503 of a server that starts, when it
	// is asked which custom resources there are.
	unknown
	unready
	faultCount
)

// A fault is only what a server or a network could do to the call. So
//   - nothing that was written once is written again, and no two events of a watch
//     change places: that would be another server;
//   - a create is never answered 409 by the proxy: that is AlreadyExists, which the
//     server says itself when a create was executed and its answer lost;
//   - a write that names a resource version is answered 409 only after someone has
//     changed the object. One that names none may be: the server gives up after
//     five lost races of its own;
//   - a write that was executed may be answered by nothing, by half an answer or by
//     504, but not by 429 or 503, which are said before anything is done;
//   - a 410 is for those who go on from a resource version.
func (f fault) possible(c call) bool {
	switch f {
	case conflict:
		return c.method == http.MethodPatch || c.method == http.MethodDelete && c.guarded
	case expired, expireStream:
		return c.versioned
	case stall, cutCleanly, cutInFrame:
		return c.watch
	case unknown, unready:
		return c.discovery
	case truncate, dropAfter, failAfter:
		return !c.watch
	}
	return true
}

// phase is a time in which each fault has a chance.
type phase struct {
	length  time.Duration
	chances [faultCount]float64
}

// schedule says what becomes of each call. It starts with start.
type schedule struct {
	seed    uint64
	phases  []phase
	started time.Time
	lag     *lag

	mu sync.Mutex
	// numbers count the calls of each key, so that what becomes of a call does not
	// hang on those to other objects.
	numbers map[string]uint64
}

// newSchedule makes phases for as long as the workload lasts. In each some
// faults are common and others do not occur; now and then there is no network.
func newSchedule(seed uint64, random *rand.Rand, length time.Duration) *schedule {
	s := &schedule{seed: seed, numbers: map[string]uint64{}, started: time.Now(), lag: newLag(random)}
	for planned := time.Duration(0); planned < length; {
		p := phase{length: 300*time.Millisecond + time.Duration(random.Int64N(int64(1500*time.Millisecond)))}
		if random.IntN(6) == 0 {
			p.chances[dropBefore] = 1
			p.length /= 2
		}
		for f := delay; f < unknown; f++ {
			if random.IntN(2) == 0 {
				p.chances[f] += random.Float64() * 0.12
			}
		}
		// It is asked every few seconds only.
		p.chances[pick(random, unknown, unready)] = pick(random, 0.0, 0, 1)
		s.phases = append(s.phases, p)
		planned += p.length
	}
	return s
}

// end has what lags come at once.
func (s *schedule) end() { s.lag.end() }

// at is the phase that long after the start. After the last the first comes again: what takes
// longer on a busy machine is not all in one. Each time they last a tenth longer, so that who
// asks every few seconds does not meet the same one for ever.
func (s *schedule) at(since time.Duration) *phase {
	for tenths := time.Duration(10); ; tenths++ {
		for i := range s.phases {
			if since -= s.phases[i].length * tenths / 10; since < 0 {
				return &s.phases[i]
			}
		}
	}
}

// next decides about a call.
func (s *schedule) next(c call) fault {
	p := s.at(time.Since(s.started))
	draw := s.draw(c, "fault").Float64()
	for f := delay; f < faultCount; f++ {
		if !f.possible(c) {
			continue
		}
		if draw -= p.chances[f]; draw < 0 {
			return f
		}
	}
	return none
}

// draw is a source of chance for the next call of the key.
func (s *schedule) draw(c call, what string) *rand.Rand {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := what + " " + c.key()
	s.numbers[key]++
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, key)
	return rand.New(rand.NewPCG(s.seed, sum.Sum64()+s.numbers[key]))
}

func (s *schedule) delay(c call) time.Duration {
	return time.Duration(s.draw(c, "delay").Int64N(int64(400 * time.Millisecond)))
}

// disturb passes some events of a watch on, and then does the fault.
func (s *schedule) disturb(ctx context.Context, fault fault, w io.Writer, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return whole(w, response) // a refusal has no events
	}
	random := s.draw(call{path: "events"}, "watch")
	frames := framesOf(response)
	for range random.IntN(12) {
		frame, err := frames.next()
		if err != nil {
			return err
		}
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	switch fault {
	case stall:
		sleep(ctx, time.Duration(random.Int64N(int64(800*time.Millisecond))))
		return frames.rest(w)
	case cutInFrame:
		frame, err := frames.next()
		if err != nil {
			return err
		}
		_, _ = w.Write(frame[:len(frame)/2])
		return errCut
	}
	return nil
}
