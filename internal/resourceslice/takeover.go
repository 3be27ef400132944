package resourceslice

import (
	"context"
	"errors"
	"fmt"
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// takeOver reads the slices that exist but are not in the cache, and applies the plan that
// follows from them.
func (p *Publisher) takeOver(ctx context.Context, key facts.SlicesKey, refused *plan.Plan) error {
	live := map[string]*resourcev1.ResourceSlice{}
	next, err := refused.TakeOver(live)
	for err == nil && next.Need != nil {
		for _, name := range next.Need.Slices {
			if live[name], err = getSlice(ctx, p.client, p.owner.Installation(), key, name); err != nil {
				return err
			}
		}
		next, err = refused.TakeOver(live)
	}
	if err != nil {
		return err
	}
	return p.applyWrites(ctx, key, &next.Writes)
}

// adoptSlice updates a slice that could not be created because it exists, if it has an earlier
// generation.
func (p *Publisher) adoptSlice(ctx context.Context, key facts.SlicesKey, slice *resourcev1.ResourceSlice, refused error) error {
	live, err := getSlice(ctx, p.client, p.owner.Installation(), key, slice.Name)
	if err != nil {
		return err
	}
	if live == nil || live.Spec.Pool.Generation >= slice.Spec.Pool.Generation {
		return fmt.Errorf("create slice %s in generation %d: %w", slice.Name, slice.Spec.Pool.Generation, errors.Unwrap(refused))
	}
	return p.updateSlice(ctx, key, plan.Adopt(slice, live))
}

// getSlice reads a slice that is to be taken over, or nil if it does not exist. One of a pool
// that nodes share may belong to another installation.
func getSlice(ctx context.Context, client kubernetes.Interface, as installation.ID, key facts.SlicesKey, name string) (*resourcev1.ResourceSlice, error) {
	live, err := client.ResourceV1().ResourceSlices().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take over slice %s: %w", name, err)
	}
	if owner := installation.Of(live); key.IsShared() && as.IsAnother(owner) {
		return nil, &installation.OwnedError{Object: "slice " + name, Resource: "resourceslices " + name, Owner: owner, As: as}
	}
	return live, nil
}

// noteTakeOver notes that slices of a driver were taken over from another installation.
func (m *memory) noteTakeOver(key facts.SlicesKey, driver string, from installation.ID) {
	m.updateEntry(key, func(e *entry) {
		e.takenFrom = maps.Clone(e.takenFrom) // copies of the entry are read without the lock
		if e.takenFrom == nil {
			e.takenFrom = map[string]installation.ID{}
		}
		e.takenFrom[driver] = from
	})
}
