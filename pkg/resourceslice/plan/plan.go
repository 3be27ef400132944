package plan

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/features"
)

// Writes bring slices to the state they should be in. They are to be applied in the
// order of the fields.
type Writes struct {
	Delete []*facts.Slice
	Update []Update
	Create []*resourcev1.ResourceSlice
}

// Empty reports whether there is nothing to write.
func (w *Writes) Empty() bool {
	return len(w.Delete)+len(w.Update)+len(w.Create) == 0
}

// Plan is what the slices of a driver on a node, or of a pool that nodes share, need.
type Plan struct {
	// Fitted are the pools that are published, which may be less than was wanted.
	features.Fitted
	Writes

	as       installation.ID
	node     *corev1.Node
	existing []*facts.Slice
}

// New compares pools that should exist with the slices that exist, as no installation
// does: for what is shown only.
func New(ctx context.Context, server features.Server, node *corev1.Node, pools []devices.Pool, existing []*facts.Slice) (*Plan, error) {
	return NewAs(ctx, "", server, node, pools, existing)
}

// NewAs compares pools that should exist with the slices that exist, as an installation
// does. Slices of no pool are deleted, but for those of another installation. Node is
// the one whose own pools they are; it is nil without such pools.
func NewAs(ctx context.Context, as installation.ID, server features.Server, node *corev1.Node, pools []devices.Pool, existing []*facts.Slice) (*Plan, error) {
	fitted, err := features.Fit(ctx, server, pools)
	if err != nil {
		return nil, err
	}
	p := &Plan{Fitted: fitted, as: as, node: node}
	return p, p.compare(existing)
}

func poolIDOf(pool *devices.Pool) facts.PoolID {
	return facts.PoolID{Driver: pool.Driver, Name: pool.Name}
}

// compare plans the writes for slices that exist.
func (p *Plan) compare(existing []*facts.Slice) error {
	p.existing, p.Writes = existing, Writes{}
	byPool := map[facts.PoolID][]*facts.Slice{}
	for _, slice := range existing {
		byPool[slice.PoolID()] = append(byPool[slice.PoolID()], slice)
	}
	for _, pool := range p.Pools {
		id, owner := poolIDOf(&pool), ownerOf(p.node, &pool)
		pool.Devices = keepTimes(pool.Devices, owner, byPool[id])
		desired, err := newSlices(owner, &pool, p.Layout)
		if err != nil {
			p.Writes = Writes{}
			return err
		}
		for _, slice := range desired {
			p.as.Record(&slice.ObjectMeta)
		}
		p.addPool(owner, desired, byPool[id])
		delete(byPool, id)
	}
	for _, slice := range existing {
		if _, obsolete := byPool[slice.PoolID()]; obsolete && !p.as.IsAnother(slice.Installation) {
			p.Delete = append(p.Delete, slice)
		}
	}
	// Oldest first: if a newer slice were deleted before, an older one whose count
	// happens to be right could pass as the whole pool.
	slices.SortStableFunc(p.Delete, func(a, b *facts.Slice) int {
		return cmp.Compare(a.Generation, b.Generation)
	})
	return nil
}

// addPool plans one pool by the rules of the upstream resourceslice controller
// (syncPool in k8s.io/dynamic-resource-allocation/resourceslice). Slices match by name.
// One of an old generation is obsolete.
func (w *Writes) addPool(owner sliceOwner, desired []*resourcev1.ResourceSlice, existing []*facts.Slice) {
	newest, current := newestOf(existing)
	missing, changed := 0, map[string]bool{}
	for _, slice := range desired {
		if match := current[slice.Name]; match == nil {
			missing++
		} else if match.Content != facts.ContentOf(&slice.Spec) || match.Count != slice.Spec.Pool.ResourceSliceCount {
			changed[slice.Name] = true
		}
	}
	generation := newest
	if missing > 0 || len(changed) > 1 {
		generation++
	}
	for _, slice := range desired {
		match := current[slice.Name]
		delete(current, slice.Name)
		slice.Spec.Pool.Generation = generation
		switch {
		case match == nil:
			w.Create = append(w.Create, slice)
		case generation != newest || changed[slice.Name] || !owner.owns(match) || match.OwnLabels != facts.OwnLabelsOf(slice) || !isRecorded(slice, match):
			w.Update = append(w.Update, Update{Existing: match, Slice: slice})
		}
	}
	for _, slice := range existing {
		if slice.Generation != newest || current[slice.GetName()] != nil {
			w.Delete = append(w.Delete, slice)
		}
	}
}

// newestOf returns the newest generation, and its slices by name.
func newestOf(existing []*facts.Slice) (int64, map[string]*facts.Slice) {
	newest, byName := int64(0), map[string]*facts.Slice{}
	for _, slice := range existing {
		newest = max(newest, slice.Generation)
	}
	for _, slice := range existing {
		if slice.Generation == newest {
			byName[slice.GetName()] = slice
		}
	}
	return newest, byName
}
