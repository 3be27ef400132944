package slices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// State is what a Publisher works from.
type State struct {
	Config *config.Set
	// Nodes are the fake nodes.
	Nodes []*corev1.Node
	// Others reports whether a node that is not among them may be someone else's, whose
	// slices stay. It is nil where none may be.
	Others func(node string) bool
	// Slices are all of the cluster. Those of kwok-dra count, and those that were before
	// someone removed the label.
	Slices []*resourcev1.ResourceSlice
}

// Preview is what a Publisher would write in a state, in the order of the nodes,
// and last for pools that nodes share.
type Preview struct {
	Writes
	// Problems are what keeps slices as they are; each names its node or pool.
	Problems []error
	// Hidden are templates that are of no effect on nodes that they select.
	Hidden []Hidden
}

// Preview returns what a Publisher that starts now would write. The error is that
// of the API server.
func (r *Renderer) Preview(ctx context.Context, state State) (*Preview, error) {
	p := &preview{Renderer: r, State: state, unlabelled: map[scope][]*Observed{}, result: &Preview{}}
	existing := map[scope][]*Observed{}
	for _, slice := range state.Slices {
		object, err := observe(slice)
		if err != nil {
			return nil, err
		}
		observed, to := object.(*Observed), p.unlabelled
		if isOwned(slice) {
			to = existing
		}
		to[observed.scope()] = append(to[observed.scope()], observed)
	}
	for _, node := range state.Nodes {
		of := nodeScope(node.Name)
		want := desire(ctx, state.Config, node, existing[of], nil)
		p.result.addHidden(want.hidden)
		for _, problem := range want.problems() {
			p.problem(of, problem)
		}
		if err := p.add(ctx, target{scope: of, holder: nodeHolder(node), node: node, existing: existing[of]}, want); err != nil {
			return nil, err
		}
		delete(existing, of)
	}
	if err := p.addShared(ctx, existing); err != nil {
		return nil, err
	}
	return p.result, p.retire(ctx, existing)
}

// preview is a Preview in the making.
type preview struct {
	*Renderer
	State
	unlabelled map[scope][]*Observed
	result     *Preview
}

func (p *preview) problem(of scope, problem error) {
	p.result.Problems = append(p.result.Problems, fmt.Errorf("%s: %w", of, problem))
}

// add adds the writes for one scope, as bringTo makes them.
func (p *preview) add(ctx context.Context, t target, want desired) error {
	drivers := statesByDriver(t, want)
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		pools, layout, err := p.fields.fit(ctx, t.node, drivers[driver].pools)
		if err != nil {
			return err
		}
		writes, err := Plan(t.holder, pools, layout, drivers[driver].existing)
		if lost := t.holder.lost(pools, p.unlabelled[t.scope]); err == nil && writes.goBack(lost) {
			writes, err = Plan(t.holder, pools, layout, slices.Concat(drivers[driver].existing, lost))
		}
		if err != nil {
			p.problem(t.scope, err)
			continue
		}
		p.result.Delete = append(p.result.Delete, writes.Delete...)
		p.result.Update = append(p.result.Update, writes.Update...)
		p.result.Create = append(p.result.Create, writes.Create...)
	}
	return nil
}

// addShared adds the writes for pools that nodes share.
func (p *preview) addShared(ctx context.Context, existing map[scope][]*Observed) error {
	for _, template := range p.Config.Shared() {
		of := sharedScope(template)
		t := target{scope: of, existing: existing[of]}
		want := desired{held: map[string]error{}}
		wanted, err := p.anyWants(ctx, template, len(t.existing) > 0)
		if wanted {
			var pool *devices.Pool
			if pool, err = template.NewSharedPool(); err == nil {
				want.pools, t.holder = []devices.Pool{*pool}, sharedHolder(pool)
			}
		}
		if err != nil {
			want.held[of.driver] = err
			p.problem(of, err)
		}
		if err := p.add(ctx, t, want); err != nil {
			return err
		}
		delete(existing, of)
	}
	return nil
}

// anyWants reports whether a node requires the pool, as findWitness does.
func (p *preview) anyWants(ctx context.Context, template *devices.Template, published bool) (bool, error) {
	var errs []error
	for _, node := range p.Nodes {
		is, err := wants(ctx, p.Config, template, node, published)
		if is {
			return true, nil
		}
		errs = append(errs, err)
	}
	return false, errors.Join(errs...)
}

// retire adds the deletion of what is of no node and no template any more.
func (p *preview) retire(ctx context.Context, existing map[scope][]*Observed) error {
	maps.DeleteFunc(existing, func(of scope, _ []*Observed) bool {
		return !of.shared() && p.Others != nil && p.Others(of.node)
	})
	left := slices.SortedFunc(maps.Keys(existing), func(a, b scope) int { return slices.Compare(a.key(), b.key()) })
	for _, of := range left {
		if err := p.add(ctx, target{scope: of, existing: existing[of]}, desired{}); err != nil {
			return err
		}
	}
	return nil
}

func (s scope) key() []string { return []string{s.node, s.driver, s.pool} }
