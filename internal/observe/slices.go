package observe

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Slices are the slices that have kwok-dra's label.
type Slices struct {
	cached.Informer[*facts.Slice]

	// Annotate, if it is set, makes the Note of each slice. Set it before the caches run.
	Annotate func(slice *resourcev1.ResourceSlice) any
}

// byKey indexes slices by their node or shared pool.
const byKey = "key"

var sliceIndexers = cache.TypedIndexers[*facts.Slice]{
	byKey: func(slice *facts.Slice) ([]string, error) { return []string{slice.Key().String()}, nil },
}

// Of returns the slices of a node or of a pool that nodes share.
func (s *Slices) Of(key facts.SlicesKey) []*facts.Slice {
	return s.By(byKey, key.String())
}

// HaveDevice reports whether an allocated device is in a slice of the node, or of a pool that nodes share.
func (s *Slices) HaveDevice(node string, result *resourcev1.DeviceRequestAllocationResult) bool {
	has := func(o *facts.Slice) bool {
		return o.Driver == result.Driver && o.Pool == result.Pool && slices.Contains(o.Devices.List(), result.Device)
	}
	return slices.ContainsFunc(s.Of(facts.SlicesKey{Node: node}), has) ||
		slices.ContainsFunc(s.Of(facts.SlicesKey{Driver: result.Driver, Pool: result.Pool}), has)
}
