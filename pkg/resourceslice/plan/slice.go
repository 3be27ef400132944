package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// maxReadable is where the readable part of a name is cut off, as the API
// server cuts generateName.
const maxReadable = 58

// sliceOwner is what slices belong to: a node, or a template's object in the
// cluster, or nothing where the template is from a file.
type sliceOwner struct {
	// name is the readable part of the slices' names.
	name string
	// reference makes the garbage collector delete what kwok-dra could not, as with
	// real drivers. It is nil for the pool of a file.
	reference *metav1.OwnerReference
}

// ownerOf is the owner of the slices of a pool, which may be a node's own.
func ownerOf(node *corev1.Node, pool *devices.Pool) sliceOwner {
	if pool.SharedWith != nil {
		return sliceOwner{name: pool.Name, reference: pool.Owner()}
	}
	return sliceOwner{name: node.Name, reference: &metav1.OwnerReference{
		APIVersion: "v1",
		Kind:       "Node",
		Name:       node.Name,
		UID:        node.UID,
		Controller: new(true),
	}}
}

func (o sliceOwner) uid() types.UID {
	if o.reference == nil {
		return ""
	}
	return o.reference.UID
}

// owns reports whether a slice has the owner that it should have.
func (o sliceOwner) owns(slice *facts.Slice) bool {
	if o.reference == nil {
		return len(slice.OwnerReferences) == 0
	}
	return slices.ContainsFunc(slice.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return apiequality.Semantic.DeepEqual(reference, *o.reference)
	})
}

// isAnother reports whether a slice belongs to another object of the owner's name.
func (o sliceOwner) isAnother(slice *facts.Slice) bool {
	return o.reference != nil && slices.ContainsFunc(slice.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return reference.Kind == o.reference.Kind && reference.UID != o.reference.UID
	})
}

// nameOf names the slice of a pool at an index. The name starts with the index,
// since the scheduler goes through a pool in the order of names. It ends with a
// hash, so that creating a slice twice is refused, and a node that is created again
// under its old name gets new slices.
func (o sliceOwner) nameOf(pool *devices.Pool, index int) string {
	readable := fmt.Sprintf("%05x-%s-%s", index, strings.ToLower(pool.Driver), strings.ReplaceAll(o.name, "/", "-"))
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", o.uid(), pool.Driver, pool.Name, index))
	return strings.TrimRight(readable, ".-") + "-" + hex.EncodeToString(sum[:5])
}

// named reports whether a slice is of the pool by its name: it has the hash that goes
// with the index that it begins with.
func (o sliceOwner) named(slice *facts.Slice, pool *devices.Pool) bool {
	var index int
	_, err := fmt.Sscanf(slice.GetName(), "%05x-", &index)
	return err == nil && slice.PoolID() == poolIDOf(pool) && o.nameOf(pool, index) == slice.GetName()
}

// newSlices makes the slices of a pool, without a generation.
func newSlices(owner sliceOwner, pool *devices.Pool, layout devices.Layout) ([]*resourcev1.ResourceSlice, error) {
	contents, err := pool.Slices(layout)
	if err != nil {
		return nil, &LayoutError{err}
	}
	made := make([]*resourcev1.ResourceSlice, len(contents))
	for i, content := range contents {
		made[i] = &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: owner.nameOf(pool, i)},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: pool.Driver,
				Pool: resourcev1.ResourcePool{
					Name:               pool.Name,
					ResourceSliceCount: int64(len(contents)),
				},
				SharedCounters:     content.CounterSets,
				Devices:            content.Devices,
				SkipNodeOperations: pool.SkipNodeOperations,
			},
		}
		if owner.reference != nil {
			made[i].OwnerReferences = []metav1.OwnerReference{*owner.reference}
		}
		facts.SetLabels(&made[i].ObjectMeta, pool.Labels(&content))
		if slices.ContainsFunc(content.Devices, consumes) {
			made[i].Spec.PartitionTypeAttribute = pool.PartitionTypeAttribute
		}
		setNodes(&made[i].Spec, owner, pool.SharedWith)
	}
	return made, nil
}

// consumes reports whether a device consumes counters. The API server takes
// partitionTypeAttribute only in a slice that has such a device.
func consumes(device resourcev1.Device) bool {
	return len(device.ConsumesCounters) > 0
}

// setNodes sets the nodes that a slice is for.
func setNodes(spec *resourcev1.ResourceSliceSpec, owner sliceOwner, sharedWith *v1alpha1.SharedWith) {
	switch {
	case sharedWith == nil:
		spec.NodeName = new(owner.name)
	case sharedWith.AllNodes:
		spec.AllNodes = new(true)
	case sharedWith.PerDeviceNodeSelection:
		spec.PerDeviceNodeSelection = new(true)
	default:
		spec.NodeSelector = sharedWith.NodeSelector
	}
}

// LayoutError is a pool that cannot be divided into slices as the API server
// wants them. Only another template can help.
type LayoutError struct{ error }
