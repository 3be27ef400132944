package plan

import (
	"fmt"
	"hash/maphash"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Observed is what the cache keeps of a ResourceSlice. A full slice takes 35 KB
// of memory for 3.5 KB on the wire, so of the devices only a hash is kept, and
// their names, which slices of a kind share, and the times of their taints.
type Observed struct {
	cached.Meta

	OwnerReferences  []metav1.OwnerReference
	NodeName, Driver string
	Pool             resourcev1.ResourcePool
	Devices          int
	Names            inventory.Names
	Content          Content
	// Taints are by device, with the times at which they were added.
	Taints map[string][]inventory.Taint

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
		canonical.Devices = withoutTimes(spec.Devices)
	}
	data, err := canonical.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	return Content(maphash.Bytes(contentSeed, data))
}

func withoutTimes(devices []resourcev1.Device) []resourcev1.Device {
	stripped := slices.Clone(devices)
	for i := range stripped {
		stripped[i].Taints = slices.Clone(stripped[i].Taints)
		for j := range stripped[i].Taints {
			stripped[i].Taints[j].TimeAdded = nil
		}
	}
	return stripped
}

// Observe makes an Observed of a slice. It is the transform of the informer,
// which may pass it its own result.
func Observe(object any) (any, error) {
	if slice, ok := object.(*resourcev1.ResourceSlice); ok {
		return observe(slice), nil
	}
	return object, nil
}

func observe(slice *resourcev1.ResourceSlice) *Observed {
	observed := &Observed{
		Meta:            cached.MetaOf(slice),
		OwnerReferences: slice.OwnerReferences,
		Driver:          slice.Spec.Driver,
		Pool:            slice.Spec.Pool,
		Devices:         len(slice.Spec.Devices),
		Names:           inventory.NamesOf(slice.Spec.Devices),
		Content:         ContentOf(&slice.Spec),
		Taints:          taintsIn(slice.Spec.Devices),
		own:             ownLabelsOf(slice),
	}
	if slice.Spec.NodeName != nil {
		observed.NodeName = *slice.Spec.NodeName
	}
	return observed
}

// Key is the key of what the slice is of.
func (o *Observed) Key() Key {
	if o.NodeName != "" {
		return NodeKey(o.NodeName)
	}
	return Key{Driver: o.Driver, Pool: o.Pool.Name}
}
