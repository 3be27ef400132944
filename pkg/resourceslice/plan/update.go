package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// Update replaces what a slice says.
type Update struct {
	Existing *facts.Slice
	Slice    *resourcev1.ResourceSlice
}

// removed are the fields of a spec that a merge patch must name to remove them: the
// slice had them before, or someone has added them.
var removed = map[string]json.RawMessage{
	"nodeSelector": null, "allNodes": null, "perDeviceNodeSelection": null, "devices": null,
	"sharedCounters": null, "partitionTypeAttribute": null, "skipNodeOperations": null,
}

var null = json.RawMessage("null")

// Patch is the update as a merge patch of the spec, the labels and the owner: the
// cache has too little for more. Its resource version makes the API server refuse it
// if the slice has changed since.
func (u *Update) Patch() ([]byte, error) {
	encoded, err := json.Marshal(u.Slice.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode its spec: %w", err)
	}
	spec := maps.Clone(removed)
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

// Adopt updates a slice that was to be created and that exists already, in an earlier
// generation: someone has removed its label, so that the cache no longer has it.
func Adopt(slice, live *resourcev1.ResourceSlice) *Update {
	existing := facts.ObserveSlice(live)
	slice.Spec.Devices = keepTimes(slice.Spec.Devices, sliceOwner{}, []*facts.Slice{existing})
	return &Update{Existing: existing, Slice: slice}
}

// TakeOver plans once more with what the cache does not have: slices of which someone
// has removed the label, or that another replica has just made. They have the
// generation that was to be written, or a later one, which never goes back. Get returns
// nil where there is no slice of the name.
func (p *Plan) TakeOver(get func(name string) (*resourcev1.ResourceSlice, error)) (*Plan, error) {
	existing := slices.Clone(p.existing)
	for i := range p.Pools {
		live, err := p.find(&p.Pools[i], get)
		if err != nil {
			return nil, err
		}
		existing = slices.DeleteFunc(existing, func(o *facts.Slice) bool {
			return slices.ContainsFunc(live, func(found *facts.Slice) bool { return found.GetName() == o.GetName() })
		})
		existing = append(existing, live...)
	}
	again := &Plan{Fitted: p.Fitted, as: p.as, node: p.node}
	return again, again.compare(existing)
}

// find gets the slices of a pool by name, also those with which it was larger.
func (p *Plan) find(pool *devices.Pool, get func(name string) (*resourcev1.ResourceSlice, error)) ([]*facts.Slice, error) {
	contents, err := pool.Slices(p.Layout)
	if err != nil {
		return nil, &LayoutError{err}
	}
	var found []*facts.Slice
	for i := 0; ; i++ {
		live, err := get(ownerOf(p.node, pool).nameOf(pool, i))
		switch {
		case err != nil:
			return nil, err
		case live != nil:
			found = append(found, facts.ObserveSlice(live))
		case i >= len(contents):
			return found, nil
		}
	}
}
