package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/features"
)

// Writes bring slices to the state they should be in. Apply them in the order of the fields.
type Writes struct {
	Delete []*facts.Slice
	Update []Update
	Create []*resourcev1.ResourceSlice
}

// IsEmpty reports whether there is nothing to write.
func (w *Writes) IsEmpty() bool {
	return len(w.Delete)+len(w.Update)+len(w.Create) == 0
}

// Plan has the writes for the slices of a driver on a node, or of a pool that nodes share.
type Plan struct {
	Writes
	// Need is what TakeOver lacks. Without it the writes are complete.
	Need *Need

	as       installation.ID
	node     *corev1.Node
	fitted   *features.Fitted
	existing []*facts.Slice
}

// New compares the pools that should exist, as the API server accepts them, with the slices
// that exist. Slices of no pool are deleted, except those of another installation; with an
// empty ID no installation is another. Node is nil if the pools are not those of a node.
func New(as installation.ID, node *corev1.Node, fitted *features.Fitted, existing []*facts.Slice) (*Plan, error) {
	p := &Plan{as: as, node: node, fitted: fitted, existing: existing}
	byPool := map[facts.PoolID][]*facts.Slice{}
	for _, slice := range existing {
		byPool[slice.PoolID()] = append(byPool[slice.PoolID()], slice)
	}
	for _, pool := range fitted.Pools {
		id, owner := poolIDOf(&pool), ownerOf(node, &pool)
		pool.Devices = copyTaintTimes(pool.Devices, owner, byPool[id])
		desired, err := newSlices(owner, &pool, fitted.Layout)
		if err != nil {
			return nil, err
		}
		for _, slice := range desired {
			as.Record(&slice.ObjectMeta)
		}
		p.addPool(owner, desired, byPool[id])
		delete(byPool, id)
	}
	for _, slice := range existing {
		if _, isObsolete := byPool[slice.PoolID()]; isObsolete && !as.IsAnother(slice.Installation) {
			p.Delete = append(p.Delete, slice)
		}
	}
	// Oldest first: if a newer slice were deleted before, an older one whose count
	// happens to be right could pass as the whole pool.
	slices.SortStableFunc(p.Delete, func(a, b *facts.Slice) int {
		return cmp.Compare(a.Generation, b.Generation)
	})
	return p, nil
}

func poolIDOf(pool *devices.Pool) facts.PoolID {
	return facts.PoolID{Driver: pool.Driver, Name: pool.Name}
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
		case generation != newest || changed[slice.Name] || !owner.isOwnerOf(match) || match.OwnLabels != facts.OwnLabelsOf(slice) || !isRecorded(slice, match):
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
