package faults

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ledger counts what goes through the proxies.
type ledger struct {
	mu     sync.Mutex
	total  int
	writes int
	last   time.Time // of the last write
	wrote  string    // what it was
	faults map[fault]int
	// recent are the times of the calls to one object within the last second, and
	// busiest is the most that there were of any.
	recent  map[string][]time.Time
	busiest burst
	// written are how often each object was written, or created in a collection.
	written map[string]int
}

// burst is how often a call was made within a second. Reads count half, and so do writes
// that name a version: others may be faster a few times.
type burst struct {
	key   string
	count int
}

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total, l.writes, l.last, l.busiest = 0, 0, time.Now(), burst{}
	l.faults, l.recent, l.written = map[fault]int{}, map[string][]time.Time{}, map[string]int{}
}

func (l *ledger) note(c call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.housekeeping {
		return
	}
	now := time.Now()
	l.total++
	if c.writes() && !c.event {
		l.writes++
		l.last, l.wrote = now, c.key()
		if l.written == nil {
			l.written = map[string]int{}
		}
		l.written[c.key()]++
	}
	// What is created is not named by the path.
	if c.method == http.MethodPost || c.dryRun {
		return
	}
	if l.recent == nil {
		l.recent = map[string][]time.Time{}
	}
	times := slices.Concat(l.recent[c.key()], []time.Time{now})
	for now.Sub(times[0]) > time.Second {
		times = times[1:]
	}
	l.recent[c.key()] = times
	count := len(times)
	if c.method == http.MethodGet || c.guarded {
		count /= 2 // each of the Pods that share a claim asks for it, or writes it
	}
	if count > l.busiest.count {
		l.busiest = burst{c.key(), count}
	}
}

func (l *ledger) fault(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.faults == nil {
		l.faults = map[fault]int{}
	}
	l.faults[f]++
}

// counts are the requests, the writes and the faults since the reset.
func (l *ledger) counts() (total, writes, faults int, busiest burst) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, count := range l.faults {
		faults += count
	}
	return l.total, l.writes, faults, l.busiest
}

// mostWritten is what was written most often since the reset.
func (l *ledger) mostWritten() (key string, count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one, times := range l.written {
		if times > count {
			key, count = one, times
		}
	}
	return key, count
}

// lastWrite says what was written last.
func (l *ledger) lastWrite() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrote
}

// await waits until there has been no write for a time from now on.
func (l *ledger) await(ctx context.Context, quiet time.Duration) {
	for started := time.Now(); ctx.Err() == nil && (time.Since(started) < quiet || l.quiet() < quiet); {
		sleep(ctx, quiet/10)
	}
}

// quiet is how long there has been no write.
func (l *ledger) quiet() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.last)
}
