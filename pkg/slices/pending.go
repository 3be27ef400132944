package slices

import (
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// pendingLimit bounds the wait for the cache. A write whose event
// never comes (the watch broke, and the slice was deleted before it was back)
// must not block its scope forever.
const pendingLimit = 30 * time.Second

// pending remembers the writes that the cache has not seen yet. A plan made
// without them would repeat them and raise the generation for nothing. It also
// tells the events of one's own writes, which need no reconciliation, from
// those of others.
type pending struct {
	mu     sync.Mutex
	scopes map[scope]*pendingScope
}

type pendingScope struct {
	// writes maps the names of slices to their writes.
	writes map[string]*write
	// waited is set when a reconciliation was put off.
	waited bool
	since  time.Time
}

// write is a write under way, or one that waits for its event.
type write struct {
	// answered is the resource version in the API server's answer.
	answered string
	// seen is the newest resource version in the cache since the write began.
	seen string
}

func newPending() *pending {
	return &pending{scopes: map[scope]*pendingScope{}}
}

// begin notes that a slice of the scope is about to be written.
func (p *pending) begin(of scope, slice string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scopes[of] == nil {
		p.scopes[of] = &pendingScope{writes: map[string]*write{}, since: time.Now()}
	}
	p.scopes[of].writes[slice] = &write{}
}

// end notes the resource version that the API server gave the slice, or "" if
// the write failed. It reports whether the scope must be reconciled again: someone
// else has changed the slice meanwhile.
func (p *pending) end(of scope, slice, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.scopes[of]
	if state == nil || state.writes[slice] == nil {
		return false
	}
	w := state.writes[slice]
	w.answered = version
	if version != "" && (w.seen == "" || cached.Older(w.seen, version)) {
		return false
	}
	p.forget(of, slice)
	return w.seen != version
}

// saw notes an event. It reports whether the scope must be reconciled: the event
// is others', not that of one's own write, or a reconciliation waits for it.
func (p *pending) saw(of scope, slice, version string) (again, others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.scopes[of]
	if state == nil || state.writes[slice] == nil {
		return true, true
	}
	w := state.writes[slice]
	if w.answered == "" {
		w.seen = version
		return false, false
	}
	if cached.Older(version, w.answered) {
		return false, false
	}
	last := p.forget(of, slice)
	others = version != w.answered
	return others || last && state.waited, others
}

// sawDeleted notes that a slice has gone from the cache, and reports whether it was
// being written.
func (p *pending) sawDeleted(of scope, slice string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.scopes[of]
	if state == nil || state.writes[slice] == nil {
		return false
	}
	p.forget(of, slice)
	return true
}

// blocks returns how much longer the scope must wait for the cache at most, or 0.
func (p *pending) blocks(of scope) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.scopes[of]
	if state == nil {
		return 0
	}
	left := pendingLimit - time.Since(state.since)
	if left <= 0 {
		delete(p.scopes, of)
		return 0
	}
	state.waited = true
	return left
}

// forget drops a write, and reports whether it was the scope's last.
func (p *pending) forget(of scope, slice string) bool {
	state := p.scopes[of]
	delete(state.writes, slice)
	if len(state.writes) > 0 {
		return false
	}
	delete(p.scopes, of)
	return true
}
