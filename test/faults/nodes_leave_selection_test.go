package faults

import (
	"context"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// mostLeavers is how many nodes leave the selection at rest, at most.
const mostLeavers = 2

// leave has nodes leave the selection at rest. No sidecar starts after that, so all
// know what they have published there, and nothing of it may stay.
func (r *run) leave(ctx context.Context) error {
	patch := r.load.setup.selection.patch(false)
	if patch == nil {
		return nil
	}
	s, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.leavers = map[string]bool{}
	for i := range nodeCount {
		name := r.load.nodeName(i)
		if len(r.leavers) == mostLeavers || s.node(name) == nil || !s.published(name) {
			continue
		}
		r.leavers[name] = true
		if err := persist(ctx, r.load.patchNode("leave "+name, i, patch).do); err != nil {
			return err
		}
	}
	defer func() { r.leavers = nil }()
	return r.settle(ctx)
}

// published reports whether a node has slices.
func (f *found) published(node string) bool {
	return slices.ContainsFunc(f.slices, func(slice resourcev1.ResourceSlice) bool { return poolOf(&slice).node == node })
}
