package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/preview"
)

// releaseOf is a release that has everything turned on, and counter sets where
// the slices have them: 1.34 has them beside the devices.
func releaseOf(pools []*pool) (preview.Release, error) {
	for _, p := range pools {
		for _, slice := range p.slices {
			if len(slice.Spec.SharedCounters) > 0 && len(slice.Spec.Devices) > 0 {
				return preview.EverythingOn("1.34")
			}
		}
	}
	return preview.EverythingOn(preview.Releases()[0])
}

// render makes the slices of templates on nodes.
func render(ctx context.Context, templates []*v1alpha1.ResourcePoolTemplate, nodes []*corev1.Node, like []*pool) ([]*resourcev1.ResourceSlice, error) {
	var decoded []*config.Documents
	for _, template := range templates {
		encoded, err := json.Marshal(template)
		if err != nil {
			return nil, fmt.Errorf("encode template %s: %w", template.Name, err)
		}
		documents, err := config.Decode("copy", encoded)
		if err != nil {
			return nil, err
		}
		decoded = append(decoded, documents)
	}
	set, err := config.NewSet(decoded...)
	if err != nil {
		return nil, err
	}
	release, err := releaseOf(like)
	if err != nil {
		return nil, err
	}
	previewed, err := preview.New(ctx, release, preview.Cluster{Config: set.Published(), Nodes: nodes})
	if err != nil {
		return nil, err
	}
	for _, problem := range previewed.Problems {
		return nil, problem
	}
	return previewed.Create, nil
}

// dividedAlike reports whether a template divides a pool into slices as it was.
func (d *draft) dividedAlike(ctx context.Context, template *v1alpha1.ResourcePoolTemplate) (bool, error) {
	node := &corev1.Node{}
	if d.members != nil {
		node = fakeCopy(d.members[0].node)
		if err := mark(node, d.values.driver, 0, d.values); err != nil {
			return false, err
		}
	}
	node.UID = "copy"
	made, err := render(ctx, []*v1alpha1.ResourcePoolTemplate{template}, []*corev1.Node{node}, d.pools[:1])
	if err != nil || len(made) != len(d.pools[0].slices) {
		return false, err
	}
	for i, slice := range d.pools[0].slices {
		if len(slice.Spec.Devices) != len(made[i].Spec.Devices) {
			return false, nil
		}
	}
	return true, nil
}

// compare renders the copy and compares it with the pools. It is an error where a
// device differs, and a note where only the slices are others.
func (f *fleet) compare(ctx context.Context, pools []*pool) ([]string, error) {
	nodes := f.nodes
	if len(nodes) == 0 { // a pool that nodes share is there while there is one
		nodes = []*corev1.Node{fakeCopy(&corev1.Node{})}
	}
	made, err := render(ctx, f.templates, nodes, pools)
	if err != nil {
		return nil, fmt.Errorf("render the copy: %w", err)
	}
	rendered, _ := poolsOf(made, nil)
	if len(rendered) != len(pools) {
		return nil, fmt.Errorf("the copy has %d pools instead of %d", len(rendered), len(pools))
	}
	var notes []string
	for i, p := range pools {
		switch {
		case !rendered[i].sameContent(p):
			return nil, fmt.Errorf("pool %s of driver %s cannot be copied: its devices would be others", p.name, p.driver)
		case !rendered[i].sameSlices(p):
			notes = append(notes, fmt.Sprintf("pool %s of driver %s is divided into slices in another way: %d instead of %d",
				p.name, p.driver, len(rendered[i].slices), len(p.slices)))
		}
	}
	return notes, nil
}

// sameContent reports whether two pools have the same devices and counter sets, in
// the same order, for the same nodes.
func (p *pool) sameContent(other *pool) bool {
	a, b := p.slices[0].Spec, other.slices[0].Spec
	for _, spec := range []*resourcev1.ResourceSliceSpec{&a, &b} {
		spec.Pool, spec.Devices, spec.SharedCounters, spec.PartitionTypeAttribute = resourcev1.ResourcePool{}, nil, nil, nil
	}
	return p.driver == other.driver && p.name == other.name && apiequality.Semantic.DeepEqual(a, b) &&
		apiequality.Semantic.DeepEqual(p.counterSets(), other.counterSets()) &&
		apiequality.Semantic.DeepEqual(timeless(p.devices()), timeless(other.devices()))
}

// sameSlices reports whether two pools of the same content are divided alike.
func (p *pool) sameSlices(other *pool) bool {
	return slices.EqualFunc(p.slices, other.slices, func(a, b *resourcev1.ResourceSlice) bool {
		one, two := a.Spec, b.Spec
		one.Pool.Generation, two.Pool.Generation = 0, 0
		one.Devices, two.Devices = timeless(one.Devices), timeless(two.Devices)
		return apiequality.Semantic.DeepEqual(one, two)
	})
}

// timeless are devices without the times at which their taints were added.
func timeless(devices []resourcev1.Device) []resourcev1.Device {
	devices = slices.Clone(devices)
	for i := range devices {
		devices[i].Taints = taints(devices[i].Taints)
	}
	return devices
}
