package slices

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// maxReadable is where the readable part of a name is cut off, as the API
// server cuts generateName.
const maxReadable = 58

// nameOf names the slice of a pool at an index. The name starts with the index,
// since the scheduler goes through a pool in the order of names. It ends with a
// hash, so that creating a slice twice is refused, and a node that is created again
// under its old name gets new slices.
func (h holder) nameOf(pool *devices.Pool, index int) string {
	readable := fmt.Sprintf("%05x-%s-%s", index, strings.ToLower(pool.Driver), strings.ReplaceAll(h.name, "/", "-"))
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", h.uid, pool.Driver, pool.Name, index))
	return strings.TrimRight(readable, ".-") + "-" + hex.EncodeToString(sum[:5])
}

// newSlices makes the slices of a pool, without a generation.
func newSlices(h holder, pool *devices.Pool, layout devices.Layout) ([]*resourcev1.ResourceSlice, error) {
	contents, err := pool.Slices(layout)
	if err != nil {
		return nil, &layoutError{err}
	}
	made := make([]*resourcev1.ResourceSlice, len(contents))
	for i, content := range contents {
		made[i] = &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name:            h.nameOf(pool, i),
				OwnerReferences: h.owners(),
			},
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
		setLabels(&made[i].ObjectMeta, pool.Labels(&content))
		if slices.ContainsFunc(content.Devices, consumes) {
			made[i].Spec.PartitionTypeAttribute = pool.PartitionTypeAttribute
		}
		setNodes(&made[i].Spec, h, pool.SharedWith)
	}
	return made, nil
}

// consumes reports whether a device consumes counters. The API server takes
// partitionTypeAttribute only in a slice that has such a device.
func consumes(device resourcev1.Device) bool {
	return len(device.ConsumesCounters) > 0
}

// setNodes sets the nodes that a slice is for.
func setNodes(spec *resourcev1.ResourceSliceSpec, h holder, sharedWith *v1alpha1.SharedWith) {
	switch {
	case sharedWith == nil:
		spec.NodeName = new(h.name)
	case sharedWith.AllNodes:
		spec.AllNodes = new(true)
	case sharedWith.PerDeviceNodeSelection:
		spec.PerDeviceNodeSelection = new(true)
	default:
		spec.NodeSelector = sharedWith.NodeSelector
	}
}

// layoutError is a pool that cannot be divided into slices as the API server
// wants them. Only another template can help.
type layoutError struct{ err error }

func (e *layoutError) Error() string { return e.err.Error() }
func (e *layoutError) Unwrap() error { return e.err }
