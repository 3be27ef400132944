package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Update replaces the content of a slice.
type Update struct {
	Existing *facts.Slice
	Slice    *resourcev1.ResourceSlice
}

// absentFields are the fields of a spec that a merge patch must name to remove them: the slice had them before, or
// someone has added them.
var absentFields = map[string]json.RawMessage{
	"nodeSelector": null, "allNodes": null, "perDeviceNodeSelection": null, "devices": null,
	"sharedCounters": null, "partitionTypeAttribute": null, "skipNodeOperations": null,
}

var null = json.RawMessage("null")

// Patch encodes the update as a merge patch of the spec, the labels and the owner: the cache keeps too little for more.
// With its resource version the API server refuses it if the slice has changed since.
func (u *Update) Patch() ([]byte, error) {
	encoded, err := json.Marshal(u.Slice.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode its spec: %w", err)
	}
	spec := maps.Clone(absentFields)
	if err := json.Unmarshal(encoded, &spec); err != nil {
		return nil, fmt.Errorf("decode its spec: %w", err)
	}
	labels, annotations := u.Existing.OwnLabels.Patch(u.Slice)
	metadata := map[string]any{
		"uid":             u.Existing.UID,
		"resourceVersion": u.Existing.ResourceVersion,
		"labels":          labels,
		"ownerReferences": u.Slice.OwnerReferences,
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
}

// Adopt updates a slice that was to be created but already exists in an earlier generation: someone has removed its
// label, so the cache no longer has it.
func Adopt(slice, live *resourcev1.ResourceSlice) *Update {
	existing := facts.ObserveSlice(live)
	keepTaintTimes([]*resourcev1.ResourceSlice{slice}, []*facts.Slice{existing})
	return &Update{Existing: existing, Slice: slice}
}

// Need is what has to be read from the API server before a plan can be made.
type Need struct {
	// Slices are names of slices.
	Slices []string
}

// TakeOver plans again with slices that the cache does not have: someone has removed their label, or another replica
// has just made them. They have the generation that was to be written, or a later one, so the generation never goes
// back. Live has slices by name, nil for one that does not exist. While it lacks any, the plan has a Need, and no
// writes.
func (p *Plan) TakeOver(live map[string]*resourcev1.ResourceSlice) (*Plan, error) {
	existing := slices.Clone(p.existing)
	for i := range p.fitted.Pools {
		pool := &p.fitted.Pools[i]
		contents, err := pool.Slices(p.fitted.Layout)
		if err != nil {
			return nil, &LayoutError{err}
		}
		var missing []string
		for i := 0; ; i++ { // the pool may have been larger
			name := sliceName(p.node, pool, i)
			slice, isRead := live[name]
			if !isRead {
				missing = append(missing, name)
			} else if slice != nil {
				existing = slices.DeleteFunc(existing, func(o *facts.Slice) bool { return o.GetName() == name })
				existing = append(existing, facts.ObserveSlice(slice))
			}
			if slice == nil && i >= len(contents) {
				break
			}
		}
		if len(missing) > 0 {
			return &Plan{Need: &Need{Slices: missing}}, nil
		}
	}
	return New(p.as, p.node, p.fitted, existing)
}
