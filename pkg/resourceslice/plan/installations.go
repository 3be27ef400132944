package plan

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
)

// InstallationsOf are the installations that slices are recorded to.
func InstallationsOf(slices []*Observed) []installation.ID {
	ids := make([]installation.ID, len(slices))
	for i, slice := range slices {
		ids[i] = slice.Installation
	}
	return ids
}

// OfPools are the slices that exist of the pools that should exist.
func (s *DriverState) OfPools() []*Observed {
	return slices.DeleteFunc(slices.Clone(s.Existing), func(o *Observed) bool {
		return !slices.ContainsFunc(s.Pools, func(pool devices.Pool) bool { return poolIDOf(&pool) == o.poolID() })
	})
}

// isRecorded reports whether a slice has the record that it should have. Which node a
// slice is of says whose it is, so only pools that nodes share need one at once.
func isRecorded(slice *resourcev1.ResourceSlice, match *Observed) bool {
	as := installation.Of(slice)
	return as == "" || match.Installation == as || match.Installation == "" && slice.Spec.NodeName != nil
}
