package slices

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
)

// reconcileShared brings the slices of a pool that nodes share to the state they
// should be in: the pool exists while some node requires it.
func (p *Publisher) reconcileShared(ctx context.Context, set *config.Set, of scope, existing []*Observed) error {
	if !p.owner.Leads() {
		return nil
	}
	if p.isUnsettled(set, of, len(existing) > 0) {
		return nil
	}
	node, problem := p.findWitness(ctx, set, of, len(existing) > 0)
	want := desired{held: map[string]error{}}
	to := target{scope: of, node: node, existing: existing}
	switch {
	case node != nil:
		pool, err := set.SharedPool(of.driver, of.pool).NewSharedPool()
		if err != nil {
			return p.refused(node, map[string]error{"template": err})
		}
		want.pools, to.holder = []devices.Pool{*pool}, sharedHolder(pool)
	case problem != nil:
		want.held[of.driver] = problem
	}
	results := p.bringTo(ctx, to, want)
	if t := set.SharedPool(of.driver, of.pool); t != nil {
		p.report(of, &want, []*devices.Template{t}, results)
	} else {
		p.report(of, &want, nil, results)
	}
	if err := results.err(); err != nil {
		return p.failed(node, of, err)
	}
	return loop.Terminal(problem)
}

// isUnsettled reports whether the pool may be of a document that is refused, since
// no template has had it exist since the process began.
func (p *Publisher) isUnsettled(set *config.Set, of scope, exists bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if set.SharedPool(of.driver, of.pool) != nil {
		p.shared[of] = true
	} else if !exists {
		delete(p.shared, of)
	}
	return exists && len(set.Unsettled) > 0 && !p.shared[of]
}

// witness is a node that requires a shared pool, or, until one is found, the node
// that is being examined.
type witness struct {
	node  string
	found bool
}

// findWitness finds a node that requires the pool, the last one if it still does.
// The error is that of nodes for which this is unknown.
func (p *Publisher) findWitness(ctx context.Context, set *config.Set, of scope, published bool) (*corev1.Node, error) {
	last := p.witnessOf(of)
	t := set.SharedPool(of.driver, of.pool)
	if t == nil {
		p.setWitness(of, witness{})
		return nil, nil
	}
	var errs []error
	for _, name := range append([]string{last.node}, p.nodes.Names()...) {
		// It is noted before it is looked at, so that no change of the node goes unseen.
		p.setWitness(of, witness{node: name})
		node := p.nodes.Get(name)
		if node == nil {
			continue
		}
		is, err := wants(ctx, set, t, node, published || last.found)
		if is {
			p.setWitness(of, witness{node: name, found: true})
			return node, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", name, err))
		}
	}
	p.setWitness(of, witness{})
	return nil, errors.Join(errs...)
}

func (p *Publisher) witnessOf(of scope) witness {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.witnesses[of]
}

func (p *Publisher) setWitness(of scope, w witness) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w == (witness{}) {
		delete(p.witnesses, of)
		return
	}
	p.witnesses[of] = w
}

// wants reports whether a node has the shared pool of a template exist, by the
// rules by which it has its own pools.
func wants(ctx context.Context, set *config.Set, t *devices.Template, node *corev1.Node, published bool) (bool, error) {
	if !slices.Contains(devices.ForDriver(set.Templates, node)[t.Driver], t) {
		return false, nil
	}
	g := gate{object: lifecycle.NodeObject(node)}
	return g.open(ctx, set, []*devices.Template{t}, func() bool { return published })
}

// tellShared queues the shared pools that may depend on the node: it is the witness
// and may no longer be one, or there is none and it may become one.
func (p *Publisher) tellShared(ctx context.Context, set *config.Set, node *corev1.Node, name string) {
	for _, t := range set.Shared() {
		of := sharedScope(t)
		w := p.witnessOf(of)
		if w.found && w.node != name {
			continue
		}
		is := false
		if node != nil {
			is, _ = wants(ctx, set, t, node, w.found) // reconcileShared reports errors
		}
		if is != w.found || w.node == name && !w.found {
			p.contests.renew(of)
			p.loop.Add(of)
		}
	}
}
