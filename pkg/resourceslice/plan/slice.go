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

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// maxReadable is where the readable part of a name is cut off, as the API
// server cuts generateName.
const maxReadable = 58

// sliceOwner is what slices belong to: a node, or a template's object in the cluster, or
// nothing if the template comes from a file.
type sliceOwner struct {
	// name is the readable part of the slices' names.
	name string
	// reference makes the garbage collector delete what kwok-dra could not, as with
	// real drivers. It is nil for the pool of a file.
	reference *metav1.OwnerReference
}

// ownerOf is the owner of the slices of a pool: the node, unless nodes share the pool.
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

// isOwnerOf reports whether a slice has the owner that it should have.
func (o sliceOwner) isOwnerOf(slice *facts.Slice) bool {
	if o.reference == nil {
		return len(slice.OwnerReferences) == 0
	}
	return slices.ContainsFunc(slice.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return apiequality.Semantic.DeepEqual(reference, *o.reference)
	})
}

// isNamesakeOfOwnerOf reports whether a slice belongs to another object of the owner's name.
func (o sliceOwner) isNamesakeOfOwnerOf(slice *facts.Slice) bool {
	return o.reference != nil && slices.ContainsFunc(slice.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return reference.Kind == o.reference.Kind && reference.UID != o.reference.UID
	})
}

// nameOf names the slice of a pool at an index. The name starts with the index because the
// scheduler goes through a pool in the order of names. It ends with a hash, so that the API
// server refuses to create a slice twice, and a node that is created again under its old
// name gets new slices.
func (o sliceOwner) nameOf(pool *devices.Pool, index int) string {
	readable := fmt.Sprintf("%05x-%s-%s", index, strings.ToLower(pool.Driver), strings.ReplaceAll(o.name, "/", "-"))
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	var uid types.UID
	if o.reference != nil {
		uid = o.reference.UID
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", uid, pool.Driver, pool.Name, index))
	return strings.TrimRight(readable, ".-") + "-" + hex.EncodeToString(sum[:5])
}

// hasNamed reports whether a slice has a name that nameOf gives slices of the pool: its hash
// goes with the index that it begins with.
func (o sliceOwner) hasNamed(slice *facts.Slice, pool *devices.Pool) bool {
	var index int
	_, err := fmt.Sscanf(slice.GetName(), "%05x-", &index)
	return err == nil && slice.PoolID() == poolIDOf(pool) && o.nameOf(pool, index) == slice.GetName()
}

// newSlices makes the slices of a pool. Their generation is set when they are compared with
// those that exist.
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
		// The API server takes partitionTypeAttribute only in a slice with such a device.
		if slices.ContainsFunc(content.Devices, func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 }) {
			made[i].Spec.PartitionTypeAttribute = pool.PartitionTypeAttribute
		}
		switch sharedWith := pool.SharedWith; {
		case sharedWith == nil:
			made[i].Spec.NodeName = new(owner.name)
		case sharedWith.AllNodes:
			made[i].Spec.AllNodes = new(true)
		case sharedWith.PerDeviceNodeSelection:
			made[i].Spec.PerDeviceNodeSelection = new(true)
		default:
			made[i].Spec.NodeSelector = sharedWith.NodeSelector
		}
	}
	return made, nil
}

// LayoutError is why a pool cannot be divided into slices that the API server accepts. Only
// a change of the template can help.
type LayoutError struct{ error }

// copyTaintTimes gives taints without a time the time that they have in the existing slices
// of the pool: the API server would fill in a new one, even if the taint existed before. A
// device may move to another slice, and after a crash be in two. Slices of an earlier node
// of that name describe other devices.
func copyTaintTimes(devices []resourcev1.Device, owner sliceOwner, existing []*facts.Slice) []resourcev1.Device {
	known := map[string][]resourcev1.DeviceTaint{}
	for _, slice := range existing {
		if owner.isNamesakeOfOwnerOf(slice) {
			continue
		}
		for device, taints := range slice.Taints {
			known[device] = append(known[device], taints...)
		}
	}
	if len(known) == 0 {
		return devices
	}
	return facts.ChangeTaints(devices, func(device string, taint *resourcev1.DeviceTaint) {
		if taint.TimeAdded == nil {
			taint.TimeAdded = earliestTime(taint, known[device])
		}
	})
}

// earliestTime is the time of the same taint in the slices, or nil. A taint with another
// value is another taint, as upstream (copyTaintTimeAdded in
// k8s.io/dynamic-resource-allocation/resourceslice).
func earliestTime(taint *resourcev1.DeviceTaint, known []resourcev1.DeviceTaint) *metav1.Time {
	var added *metav1.Time
	for _, k := range known {
		same := k.Key == taint.Key && k.Value == taint.Value && k.Effect == taint.Effect
		if same && (added == nil || k.TimeAdded.Before(added)) {
			added = k.TimeAdded.DeepCopy()
		}
	}
	return added
}
