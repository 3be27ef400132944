package slices

import "time"

// stragglers is how long slices of a node that has left the selection may still come:
// from a write that was on its way, or from a replica that sees the node leave later.
const stragglers = 5 * time.Minute

// know notes that a node is, or was, fake.
func (p *Publisher) know(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := p.known[node]; !is {
		p.known[node] = nil
	}
}

// others reports whether slices of a node that is not fake may be someone else's.
func (p *Publisher) others(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, was := p.known[node]
	return !was && p.nodes.Others(node)
}

// leave forgets a node that is no longer fake once its slices are gone for good.
func (p *Publisher) leave(node string, bare bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[node] = nil
	if !bare {
		delete(p.bare, node)
		return
	}
	if p.bare[node].IsZero() {
		p.bare[node] = time.Now()
	}
	if left := stragglers - time.Since(p.bare[node]); left > 0 && p.nodes.Others(node) {
		p.loop.AddAfter(nodeScope(node), left)
		return
	}
	delete(p.known, node)
	delete(p.bare, node)
}
