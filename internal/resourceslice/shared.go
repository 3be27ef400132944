package resourceslice

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// reconcileShared has a pool that nodes share exist while some node requires it.
func (p *Publisher) reconcileShared(ctx context.Context, set *config.Set, key facts.SlicesKey, observed []*facts.Slice) error {
	if !p.owner.Leads() {
		return nil
	}
	as := p.owner.Installation()
	existing, another := plan.OwnShared(as, observed)
	template := set.SharedPool(key.Driver, key.Pool)
	t, isUnknown := target{key: key}, false
	p.memory.updateEntry(key, func(e *entry) {
		isUnknown = template == nil && len(existing) > 0 && !e.isTemplated
		e.isTemplated = template != nil || len(existing) > 0 && e.isTemplated
		if template == nil {
			e.witness = witness{}
		}
		t.last = *e
	})
	if isUnknown && len(set.Unsettled) > 0 {
		return nil // the slices may come from a document that is refused
	}
	var desired plan.Desired
	if template != nil {
		node, err := p.findWitness(ctx, set, template, len(existing) > 0)
		t.node = node
		if node != nil && another != "" {
			results := p.syncPools(ctx, t, &plan.Desired{}, existing)
			owned := plan.NewOwnedError(as, key, observed, another)
			desired = plan.DesiredShared(template, false, owned)
			p.reporter.outcomes(key.String(), results.templateOutcomes(&desired))
			p.reporter.reportOwned(ctx, t, template, owned)
			return results.err
		}
		desired = plan.DesiredShared(template, node != nil, err)
	}
	suspended := desired.Suspended[key.Driver]
	if t.node == nil && suspended == nil && !p.memory.mayRetire(as, key, existing) {
		return nil
	}
	p.reporter.owned.Delete(key)
	results := p.syncPools(ctx, t, &desired, existing)
	if results.isPending && results.err == nil {
		return nil
	}
	p.reporter.outcomes(key.String(), results.templateOutcomes(&desired))
	if results.err != nil {
		return p.reporter.reportFailure(t.node, results.err, p.loop.NumRequeues(key))
	}
	if t.node != nil && suspended != nil {
		return p.reporter.reportProblems(t.node, map[string]error{"template": suspended})
	}
	return loop.Terminal(suspended)
}

// findWitness finds a node that requires the pool, preferably the last one. The error is that of nodes of which this is
// unknown.
func (p *Publisher) findWitness(ctx context.Context, set *config.Set, t *devices.Template, isPublished bool) (*corev1.Node, error) {
	key := plan.SharedKey(t)
	last := p.memory.entryOf(key).witness
	setWitness := func(w witness) { p.memory.updateEntry(key, func(e *entry) { e.witness = w }) }
	var errs []error
	for _, name := range append([]string{last.node}, p.caches.Nodes.Keys()...) {
		setWitness(witness{node: name}) // before the node is read, so that no change of it goes unseen
		node := p.caches.Nodes.Get(name)
		if node == nil {
			continue
		}
		isRequired, err := plan.Requires(ctx, set, node, t, isPublished || last.isFound)
		if isRequired {
			setWitness(witness{node: name, isFound: true})
			return node, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", name, err))
		}
	}
	setWitness(witness{})
	return nil, errors.Join(errs...)
}

// enqueueSharedPools queues the pools that may depend on a node: the node is the witness and may no longer be one, or
// there is none and it may become one.
func (p *Publisher) enqueueSharedPools(ctx context.Context, set *config.Set, name string, node *corev1.Node) {
	for _, t := range set.Shared() {
		key := plan.SharedKey(t)
		last := p.memory.entryOf(key).witness
		if last.isFound && last.node != name {
			continue
		}
		isRequired := false
		if node != nil {
			isRequired, _ = plan.Requires(ctx, set, node, t, last.isFound) // reconcileShared reports errors
		}
		if isRequired != last.isFound || last.node == name && !last.isFound {
			p.memory.forgetForeignWrites(key)
			p.loop.Add(key)
		}
	}
}
