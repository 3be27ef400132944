package plan

import (
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// InstallationsOf lists the installations that slices are recorded to.
func InstallationsOf(slices []*facts.Slice) []installation.ID {
	ids := make([]installation.ID, len(slices))
	for i, slice := range slices {
		ids[i] = slice.Installation
	}
	return ids
}

// OwnSlices returns the slices that are not recorded to another installation.
func OwnSlices(as installation.ID, existing []*facts.Slice) []*facts.Slice {
	return slices.DeleteFunc(slices.Clone(existing), func(o *facts.Slice) bool { return as.IsAnother(o.Installation) })
}

// OwnShared returns the slices of a shared pool that an installation may change, and the other
// installation to which the pool is recorded, or none.
func OwnShared(as installation.ID, existing []*facts.Slice) (own []*facts.Slice, another installation.ID) {
	own, another = OwnSlices(as, existing), as.Another(InstallationsOf(existing))
	if another != "" { // what has no record is its to take over
		own = slices.DeleteFunc(own, func(o *facts.Slice) bool { return o.Installation != as })
	}
	return own, another
}

// NewOwnedError is the error of slices that are recorded to another installation.
func NewOwnedError(as installation.ID, key facts.SlicesKey, existing []*facts.Slice, owner installation.ID) *installation.OwnedError {
	owned := &installation.OwnedError{Object: key.String(), Resource: "resourceslices", Owner: owner, As: as}
	for _, o := range existing {
		if o.Installation == owner {
			owned.Resource += " " + o.GetName()
		}
	}
	return owned
}

// OfPools are the slices that exist of the pools that should exist.
func (s *DriverState) OfPools() []*facts.Slice {
	return slices.DeleteFunc(slices.Clone(s.Existing), func(o *facts.Slice) bool {
		return !slices.ContainsFunc(s.Pools, func(pool devices.Pool) bool { return poolIDOf(&pool) == o.PoolID() })
	})
}
