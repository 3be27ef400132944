package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
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

// New compares the pools that should exist, as the API server accepts them, with the slices that exist. Slices of no
// pool are deleted, except those of another installation; with an empty ID no installation is another. Node is nil if
// the pools are not those of a node.
func New(as installation.ID, node *corev1.Node, fitted *features.Fitted, existing []*facts.Slice) (*Plan, error) {
	p := &Plan{as: as, node: node, fitted: fitted, existing: existing}
	byPool, matched := map[facts.PoolID][]*facts.Slice{}, sets.New[string]()
	for _, slice := range existing {
		byPool[slice.PoolID] = append(byPool[slice.PoolID], slice)
	}
	for i := range fitted.Pools {
		pool := &fitted.Pools[i]
		desired, err := newSlices(node, pool, fitted.Layout)
		if err != nil {
			return nil, err
		}
		for _, slice := range desired {
			as.Record(&slice.ObjectMeta)
		}
		id := poolIDOf(pool)
		if len(byPool[id]) > 0 {
			keepTaintTimes(desired, byPool[id])
		}
		p.addPool(desired, byPool[id], matched)
		delete(byPool, id)
	}
	for _, slice := range existing {
		_, isOfNoPool := byPool[slice.PoolID]
		if isOfNoPool && !as.IsAnother(slice.Installation) || !isOfNoPool && !matched.Has(slice.GetName()) {
			p.Delete = append(p.Delete, slice)
		}
	}
	// Oldest first: if a newer slice were deleted before, an older one whose count happens to be right could pass as
	// the whole pool.
	slices.SortStableFunc(p.Delete, func(a, b *facts.Slice) int {
		return cmp.Compare(a.Generation, b.Generation)
	})
	return p, nil
}

func poolIDOf(pool *devices.Pool) facts.PoolID {
	return facts.PoolID{Driver: pool.Driver, Pool: pool.Name}
}

// LayoutError is why a pool cannot be divided into slices that the API server accepts. Only a change of the template
// can help.
type LayoutError struct{ error }

// newSlices makes the slices of a pool. Their generation is set when they are compared with those that exist.
func newSlices(node *corev1.Node, pool *devices.Pool, layout devices.Layout) ([]*resourcev1.ResourceSlice, error) {
	contents, err := pool.Slices(layout)
	if err != nil {
		return nil, &LayoutError{err}
	}
	made := make([]*resourcev1.ResourceSlice, len(contents))
	for i, content := range contents {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: sliceName(node, pool, i), Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}},
			Spec: resourcev1.ResourceSliceSpec{
				Driver:             pool.Driver,
				Pool:               resourcev1.ResourcePool{Name: pool.Name, ResourceSliceCount: int64(len(contents))},
				SharedCounters:     content.CounterSets,
				Devices:            content.Devices,
				SkipNodeOperations: pool.SkipNodeOperations,
			},
		}
		if labels := pool.Labels(&content); len(labels) > 0 {
			maps.Copy(slice.Labels, labels)
			slice.Annotations = map[string]string{facts.LabelsAnnotation: strings.Join(slices.Sorted(maps.Keys(labels)), ",")}
		}
		// The API server takes partitionTypeAttribute only in a slice with such a device.
		if slices.ContainsFunc(content.Devices, func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 }) {
			slice.Spec.PartitionTypeAttribute = pool.PartitionTypeAttribute
		}
		switch sharedWith := pool.SharedWith; {
		case sharedWith == nil:
			slice.Spec.NodeName = new(node.Name)
		case sharedWith.AllNodes:
			slice.Spec.AllNodes = new(true)
		case sharedWith.PerDeviceNodeSelection:
			slice.Spec.PerDeviceNodeSelection = new(true)
		default:
			slice.Spec.NodeSelector = sharedWith.NodeSelector
		}
		// The owner makes the garbage collector delete what kwok-dra could not, as with real drivers. The pool of a
		// file that nodes share has none.
		if pool.SharedWith == nil {
			slice.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}}
		} else if owner := pool.Owner; owner != nil {
			slice.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		made[i] = slice
	}
	return made, nil
}

// maxReadable is the longest readable part of a name, as the API server cuts generateName.
const maxReadable = 58

// sliceName names the slice of a pool at an index. The name starts with the index because the scheduler goes through a
// pool in the order of names. It ends with a hash, so that the API server refuses to create a slice twice, and a node
// that is created again under its old name gets new slices.
func sliceName(node *corev1.Node, pool *devices.Pool, index int) string {
	name, uid := pool.Name, types.UID("")
	if pool.SharedWith == nil {
		name, uid = node.Name, node.UID
	} else if owner := pool.Owner; owner != nil {
		uid = owner.UID
	}
	readable := fmt.Sprintf("%05x-%s-%s", index, strings.ToLower(pool.Driver), strings.ReplaceAll(name, "/", "-"))
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", uid, pool.Driver, pool.Name, index))
	return strings.TrimRight(readable, ".-") + "-" + hex.EncodeToString(sum[:5])
}

// addPool plans one pool by the rules of the upstream resourceslice controller (syncPool in
// k8s.io/dynamic-resource-allocation/resourceslice). Slices match by name, but not those of an old generation. The
// names of those that match are added to matched.
func (w *Writes) addPool(desired []*resourcev1.ResourceSlice, existing []*facts.Slice, matched sets.Set[string]) {
	newest, current := int64(0), map[string]*facts.Slice{}
	for _, slice := range existing {
		newest = max(newest, slice.Generation)
		current[slice.GetName()] = slice
	}
	maps.DeleteFunc(current, func(_ string, slice *facts.Slice) bool { return slice.Generation != newest })
	missing, changed := 0, map[string]bool{}
	for _, slice := range desired {
		switch match := current[slice.Name]; {
		case match == nil:
			missing++
		case match.Content != facts.ContentOf(&slice.Spec) || match.Count != slice.Spec.Pool.ResourceSliceCount:
			changed[slice.Name] = true
		}
	}
	generation := newest
	if missing > 0 || len(changed) > 1 {
		generation++
	}
	for _, slice := range desired {
		slice.Spec.Pool.Generation = generation
		match := current[slice.Name]
		if match == nil {
			w.Create = append(w.Create, slice)
			continue
		}
		matched.Insert(slice.Name)
		if generation != newest || changed[slice.Name] || !hasSameMetadata(match, slice) {
			w.Update = append(w.Update, Update{Existing: match, Slice: slice})
		}
	}
}

// hasSameMetadata reports whether a slice that exists has the owner, the labels and the record of the desired one. Its
// node tells whose a slice is, so only pools that nodes share need a record at once.
func hasSameMetadata(existing *facts.Slice, desired *resourcev1.ResourceSlice) bool {
	hasOwner := len(desired.OwnerReferences) == 0 && len(existing.OwnerReferences) == 0
	for _, owner := range desired.OwnerReferences {
		hasOwner = slices.ContainsFunc(existing.OwnerReferences, func(reference metav1.OwnerReference) bool {
			return apiequality.Semantic.DeepEqual(reference, owner)
		})
	}
	as := installation.Of(desired)
	isRecorded := as == "" || existing.Installation == as || existing.Installation == "" && desired.Spec.NodeName != nil
	return hasOwner && isRecorded && existing.OwnLabels == facts.OwnLabelsOf(desired)
}

// keepTaintTimes gives taints without a time the time that they have in the existing slices of the pool: the API server
// would fill in a new one, even if the taint existed before. A device may move to another slice, and after a crash be
// in two. Slices of an earlier owner of the same name describe other devices.
func keepTaintTimes(desired []*resourcev1.ResourceSlice, existing []*facts.Slice) {
	if len(desired) == 0 {
		return
	}
	known := map[string][]resourcev1.DeviceTaint{}
	for _, slice := range existing {
		isOfNamesake := slices.ContainsFunc(slice.OwnerReferences, func(reference metav1.OwnerReference) bool {
			return slices.ContainsFunc(desired[0].OwnerReferences, func(owner metav1.OwnerReference) bool {
				return reference.Kind == owner.Kind && reference.UID != owner.UID
			})
		})
		for device, taints := range slice.Taints {
			if !isOfNamesake {
				known[device] = append(known[device], taints...)
			}
		}
	}
	if len(known) == 0 {
		return
	}
	for _, slice := range desired {
		slice.Spec.Devices = facts.ChangeTaints(slice.Spec.Devices, func(device string, taint *resourcev1.DeviceTaint) {
			if taint.TimeAdded == nil {
				taint.TimeAdded = earliestTime(taint, known[device])
			}
		})
	}
}

// earliestTime is the time of the same taint in the slices, or nil. A taint with another value is another taint, as
// upstream (copyTaintTimeAdded in k8s.io/dynamic-resource-allocation/resourceslice).
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

// InstallationsOf lists the installations that slices are recorded to.
func InstallationsOf(existing []*facts.Slice) []installation.ID {
	ids := make([]installation.ID, len(existing))
	for i, slice := range existing {
		ids[i] = slice.Installation
	}
	return ids
}

// OwnSlices returns the slices that are not recorded to another installation.
func OwnSlices(as installation.ID, existing []*facts.Slice) []*facts.Slice {
	return slices.DeleteFunc(slices.Clone(existing), func(o *facts.Slice) bool { return as.IsAnother(o.Installation) })
}

// OwnShared returns the slices of a shared pool that an installation may change, and the other installation to which
// the pool is recorded, or none.
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
