package plan

import (
	"cmp"
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

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
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
		if len(byPool[id]) > 0 {
			pool.Devices = copyTaintTimes(pool.Devices, owner, byPool[id])
		}
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

// maxReadable is the longest readable part of a name, as the API server cuts generateName.
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

// isOfNamesake reports whether a slice belongs to another object of the owner's name.
func (o sliceOwner) isOfNamesake(slice *facts.Slice) bool {
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
		if owner.isOfNamesake(slice) {
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
