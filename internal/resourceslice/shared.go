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
	if isUnknown := p.memory.noteSharedPool(key, template != nil, len(existing) > 0); isUnknown && len(set.Unsettled) > 0 {
		return nil // the slices may come from a document that is refused
	}
	t := target{key: key, last: p.memory.entryOf(key)}
	var desired plan.Desired
	if template != nil {
		node, err := p.findWitness(ctx, set, template, len(existing) > 0)
		t.node = node
		if node != nil && another != "" {
			results := p.syncPools(ctx, t, &plan.Desired{}, existing)
			owned := plan.NewOwnedError(as, key, observed, another)
			desired = plan.DesiredShared(template, false, owned)
			p.reporter.reportOutcomes(key, &desired, &results)
			p.reporter.reportOwned(ctx, t, template, owned)
			return results.err
		}
		desired = plan.DesiredShared(template, node != nil, err)
	}
	suspended := desired.Suspended[key.Driver]
	if t.node == nil && suspended == nil && !p.memory.mayRetire(as, key, existing) {
		return nil
	}
	p.reporter.forgetOwned(key)
	results := p.syncPools(ctx, t, &desired, existing)
	if results.isPending && results.err == nil {
		return nil
	}
	p.reporter.reportOutcomes(key, &desired, &results)
	if results.err != nil {
		return p.reporter.reportFailure(t.node, results.err, p.loop.NumRequeues(key))
	}
	if t.node != nil && suspended != nil {
		return p.reporter.reportProblems(t.node, map[string]error{"template": suspended})
	}
	return loop.Terminal(suspended)
}

// noteSharedPool notes whether a template has a pool exist, and whether there are slices. It
// reports whether these may come from a document that is refused, since no template has had
// the pool exist since the process began.
func (m *memory) noteSharedPool(key facts.SlicesKey, hasTemplate, hasSlices bool) (isUnknown bool) {
	m.updateEntry(key, func(e *entry) {
		isUnknown = !hasTemplate && hasSlices && !e.isTemplated
		if !hasTemplate {
			e.witness = witness{}
		}
		e.isTemplated = hasTemplate || hasSlices && e.isTemplated
	})
	return isUnknown
}

// findWitness finds a node that requires the pool, preferably the last one. The error is
// that of nodes of which this is unknown.
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

// enqueueSharedPool queues the pool of a template if it may depend on a node: the node is
// the witness and may no longer be one, or there is none and it may become one.
func (p *Publisher) enqueueSharedPool(ctx context.Context, set *config.Set, t *devices.Template, name string, node *corev1.Node) {
	key := plan.SharedKey(t)
	last := p.memory.entryOf(key).witness
	if last.isFound && last.node != name {
		return
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
