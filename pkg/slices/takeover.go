package slices

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// takeOver plans and writes a driver's pools once more, with what the cache does not
// have: slices of which someone has removed the label, or that another replica has
// just made. They have the generation that was to be written, or a later one, which
// never goes back.
func (p *Publisher) takeOver(ctx context.Context, t target, pools []devices.Pool, layout devices.Layout, existing []*Observed) error {
	for i := range pools {
		found, err := p.find(ctx, t.holder, &pools[i], layout)
		if err != nil {
			return err
		}
		existing = append(slices.DeleteFunc(slices.Clone(existing), func(o *Observed) bool {
			return slices.ContainsFunc(found, func(live *Observed) bool { return live.Name == o.Name })
		}), found...)
	}
	writes, err := Plan(t.holder, pools, layout, existing)
	if err != nil {
		return err
	}
	return p.apply(ctx, t.scope, writes)
}

// find asks for the slices of a pool by their names, also for those with which it was
// larger.
func (p *Publisher) find(ctx context.Context, h holder, pool *devices.Pool, layout devices.Layout) ([]*Observed, error) {
	contents, err := pool.Slices(layout)
	if err != nil {
		return nil, &layoutError{err}
	}
	var found []*Observed
	for i := 0; ; i++ {
		name := h.nameOf(pool, i)
		live, err := p.client.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && i < len(contents):
			continue
		case apierrors.IsNotFound(err):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("take over slice %s: %w", name, err)
		}
		observed, err := observe(live)
		if err != nil {
			return nil, err
		}
		found = append(found, observed.(*Observed))
	}
}

// lost are those slices that are of the pools by their names, as find finds them.
func (h holder) lost(pools []devices.Pool, unlabelled []*Observed) []*Observed {
	var lost []*Observed
	for _, slice := range unlabelled {
		if slices.ContainsFunc(pools, func(pool devices.Pool) bool {
			return pool.Driver == slice.Driver && pool.Name == slice.Pool.Name && h.isOf(slice.Name, &pool)
		}) {
			lost = append(lost, slice)
		}
	}
	return lost
}

// goBack reports whether the writes would create a slice that is there already, of
// the same generation or a later one.
func (w *Writes) goBack(lost []*Observed) bool {
	return slices.ContainsFunc(w.Create, func(made *resourcev1.ResourceSlice) bool {
		return slices.ContainsFunc(lost, func(o *Observed) bool {
			return o.Name == made.Name && o.Pool.Generation >= made.Spec.Pool.Generation
		})
	})
}
