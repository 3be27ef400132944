package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// fleet is a copy of real nodes.
type fleet struct {
	templates []*v1alpha1.ResourcePoolTemplate
	// sources has for each template the pools that it yields.
	sources [][]*pool
	nodes   []*corev1.Node
	// failed are the pools of which no template could be made.
	failed map[*pool]error
	// model is set where templates of one node are for others.
	model *model
}

// newFleet copies pools and their nodes. A pool that cannot be copied does not stop the
// others: it is left out, and the rest is copied without it.
func newFleet(ctx context.Context, m *model, nodes []*corev1.Node, pools []*pool) (copied *fleet, kept []*pool, left []leftOut, notes []string, err error) {
	for {
		f := &fleet{model: m, failed: map[*pool]error{}}
		if err := f.addPools(ctx, nodes, pools); err != nil {
			return nil, nil, nil, nil, err
		}
		kept = slices.DeleteFunc(slices.Clone(pools), func(p *pool) bool { return f.failed[p] != nil })
		differ, notes, err := f.comparePools(ctx, kept)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return nil, nil, nil, nil, err
		}
		maps.Copy(differ, f.failed)
		if len(differ) == 0 {
			return f, kept, left, notes, nil
		}
		if len(pools) > 1 {
			differ, err = findFailingAlone(ctx, m, nodes, differ)
		}
		if err != nil {
			return nil, nil, nil, nil, err
		}
		pools = slices.DeleteFunc(slices.Clone(pools), func(p *pool) bool {
			reason, isLeft := differ[p]
			if isLeft {
				left = append(left, newLeftOutPool(p, reason))
			}
			return isLeft
		})
	}
}

// findFailingAlone returns the pools that cannot be copied even by themselves. The others may
// have failed only because they had a template or a node in common with those. If all can
// be, they get in the way of each other, and all are returned.
func findFailingAlone(ctx context.Context, m *model, nodes []*corev1.Node, differ map[*pool]error) (map[*pool]error, error) {
	alone := map[*pool]error{}
	for p := range differ {
		with := nodes
		if p.nodeName() != "" {
			with = slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool { return node.Name != p.nodeName() })
		}
		_, _, left, _, err := newFleet(ctx, m, with, []*pool{p})
		if err != nil {
			return nil, err
		}
		if len(left) > 0 {
			alone[p] = errors.New(left[0].reason)
		}
	}
	if len(alone) == 0 {
		return differ, nil
	}
	return alone, nil
}

// listRefusedPools returns a reason for each pool of a template that is refused, as by a limit on all
// templates together.
func (f *fleet) listRefusedPools(refusals []*config.Refusal) map[*pool]error {
	refused := map[*pool]error{}
	for i, template := range f.templates {
		for _, refusal := range refusals {
			if refusal.Object != fmt.Sprintf("%s %q", v1alpha1.ResourcePoolTemplateKind, template.Name) {
				continue
			}
			for _, p := range f.sources[i] {
				refused[p] = refusal
			}
		}
	}
	return refused
}
