package slices

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Writes bring a node's slices to the state they should be in. They are to be
// applied in the order of the fields.
type Writes struct {
	Delete []*Observed
	Update []Update
	Create []*resourcev1.ResourceSlice
}

// Update replaces what a slice says.
type Update struct {
	Existing *Observed
	Slice    *resourcev1.ResourceSlice
}

// Empty reports whether there is nothing to write.
func (w *Writes) Empty() bool {
	return len(w.Delete)+len(w.Update)+len(w.Create) == 0
}

type poolKey struct{ driver, name string }

// Plan compares the pools that a holder should have, laid out as the API server
// wants them, with the slices that exist for it. Slices of no pool are deleted.
func Plan(h holder, pools []devices.Pool, layout devices.Layout, existing []*Observed) (Writes, error) {
	byPool := map[poolKey][]*Observed{}
	for _, slice := range existing {
		key := poolKey{slice.Driver, slice.Pool.Name}
		byPool[key] = append(byPool[key], slice)
	}
	var writes Writes
	for i := range pools {
		key := poolKey{pools[i].Driver, pools[i].Name}
		desired, err := newSlices(h, timesOfPool(h, byPool[key]).keep(&pools[i]), layout)
		if err == nil {
			err = writes.addPool(h, desired, byPool[key])
		}
		if err != nil {
			return Writes{}, err
		}
		delete(byPool, key)
	}
	for _, slice := range existing {
		if _, obsolete := byPool[poolKey{slice.Driver, slice.Pool.Name}]; obsolete {
			writes.Delete = append(writes.Delete, slice)
		}
	}
	// Oldest first: if a newer slice were deleted before, an older one whose count
	// happens to be right could pass as the whole pool.
	slices.SortStableFunc(writes.Delete, func(a, b *Observed) int {
		return cmp.Compare(a.Pool.Generation, b.Pool.Generation)
	})
	return writes, nil
}

// addPool plans one pool by the rules of the upstream resourceslice controller
// (syncPool in k8s.io/dynamic-resource-allocation/resourceslice).
func (w *Writes) addPool(h holder, desired []*resourcev1.ResourceSlice, existing []*Observed) error {
	state := matchExisting(desired, existing)
	w.Delete = append(w.Delete, state.obsolete...)
	changed, err := state.countChanged()
	if err != nil {
		return err
	}
	generation := state.generation
	if raised := state.missing > 0 || changed > 1; raised {
		generation++
	}
	for _, member := range state.members {
		member.slice.Spec.Pool.Generation = generation
		switch {
		case member.existing == nil:
			w.Create = append(w.Create, member.slice)
		case member.changed || !h.owns(member.existing) || !member.existing.own.match(member.slice) || generation != state.generation:
			w.Update = append(w.Update, Update{Existing: member.existing, Slice: member.slice})
		}
	}
	return nil
}

// poolState is a pool's slices as they should be, each beside the one that
// exists for it.
type poolState struct {
	generation int64
	members    []*member
	missing    int
	obsolete   []*Observed
}

type member struct {
	slice    *resourcev1.ResourceSlice
	existing *Observed
	changed  bool
}

// matchExisting matches slices by name. One of an old generation is obsolete.
func matchExisting(desired []*resourcev1.ResourceSlice, existing []*Observed) poolState {
	var state poolState
	for _, slice := range existing {
		state.generation = max(state.generation, slice.Pool.Generation)
	}
	byName := map[string]*Observed{}
	for _, slice := range existing {
		if slice.Pool.Generation == state.generation {
			byName[slice.Name] = slice
		}
	}
	for _, slice := range desired {
		current := byName[slice.Name]
		if current == nil {
			state.missing++
		}
		state.members = append(state.members, &member{slice: slice, existing: current})
	}
	state.obsolete = slices.DeleteFunc(slices.Clone(existing), func(o *Observed) bool {
		return slices.ContainsFunc(state.members, func(m *member) bool { return m.existing == o })
	})
	return state
}

// countChanged marks the slices whose spec must change, and counts them.
func (s *poolState) countChanged() (int, error) {
	changed := 0
	for _, member := range s.members {
		if member.existing == nil {
			continue
		}
		content, err := ContentOf(&member.slice.Spec)
		if err != nil {
			return 0, err
		}
		if member.existing.Content != content || member.existing.Pool.ResourceSliceCount != member.slice.Spec.Pool.ResourceSliceCount {
			member.changed = true
			changed++
		}
	}
	return changed, nil
}

// owns reports whether a slice has the owner that it should have.
func (h holder) owns(slice *Observed) bool {
	if h.owner == nil {
		return len(slice.OwnerReferences) == 0
	}
	return slices.ContainsFunc(slice.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return apiequality.Semantic.DeepEqual(owner, *h.owner)
	})
}
