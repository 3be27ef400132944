package plan

import (
	"fmt"
	"hash/maphash"
	"slices"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Observed is what the cache keeps of a ResourceSlice. A full slice takes 35 KB
// of memory for 3.5 KB on the wire, so of the devices only a hash is kept, and what
// inventories show of them.
type Observed struct {
	cached.Meta
	inventory.Slice

	OwnerReferences []metav1.OwnerReference
	Content         Content
	// Installation is the one that the slice is recorded to, or none.
	Installation installation.ID

	own ownLabels
}

// Content is a hash of all that a slice says but its generation and the pool's
// slice count. It is only good within one process.
type Content uint64

var contentSeed = maphash.MakeSeed()

// ContentOf hashes a spec. Protobuf sorts map keys and prints quantities in
// their canonical form, so equal specs have equal hashes. TimeAdded of taints
// is left out: the API server fills it in.
func ContentOf(spec *resourcev1.ResourceSliceSpec) Content {
	canonical := *spec
	canonical.Pool = resourcev1.ResourcePool{Name: spec.Pool.Name}
	if slices.ContainsFunc(spec.Devices, func(d resourcev1.Device) bool { return len(d.Taints) > 0 }) {
		canonical.Devices = changeTaints(spec.Devices, func(_ string, taint *resourcev1.DeviceTaint) { taint.TimeAdded = nil })
	}
	data, err := canonical.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	return Content(maphash.Bytes(contentSeed, data))
}

// Observe makes an Observed of a slice.
func Observe(slice *resourcev1.ResourceSlice) *Observed {
	observed := &Observed{
		Meta:            cached.MetaOf(slice),
		Slice:           inventory.SliceOf(slice),
		OwnerReferences: slice.OwnerReferences,
		Content:         ContentOf(&slice.Spec),
		Installation:    unique.Make(installation.Of(slice)).Value(), // one copy for the slices of a fleet
		own:             ownLabelsOf(slice),
	}
	observed.Facts, observed.Taints = inventory.FactsOf(&slice.Spec), taintsIn(slice.Spec.Devices)
	return observed
}

// Key is the key of what the slice is of.
func (o *Observed) Key() Key {
	if o.Node != "" {
		return NodeKey(o.Node)
	}
	return Key{Driver: o.Driver, Pool: o.Pool}
}
