package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// renderSlices makes the slices of templates on nodes, and says what keeps others from being
// made.
func renderSlices(ctx context.Context, templates []*v1alpha1.ResourcePoolTemplate, nodes []*corev1.Node, like []*pool) (made []*resourcev1.ResourceSlice, problems []error, err error) {
	var decoded []*config.Documents
	for _, template := range templates {
		encoded, err := json.Marshal(template)
		if err != nil {
			return nil, nil, fmt.Errorf("encode template %s: %w", template.Name, err)
		}
		documents, err := config.Decode("copy", encoded)
		if err != nil {
			return nil, nil, err
		}
		decoded = append(decoded, documents)
	}
	set, err := config.NewSet(decoded...)
	if err != nil {
		return nil, nil, err
	}
	// Kubernetes 1.34 has counter sets beside the devices.
	name := preview.Releases()[0]
	if slices.ContainsFunc(like, func(p *pool) bool {
		return slices.ContainsFunc(p.slices, func(slice *resourcev1.ResourceSlice) bool {
			return len(slice.Spec.SharedCounters) > 0 && len(slice.Spec.Devices) > 0
		})
	}) {
		name = "1.34"
	}
	release, err := preview.EverythingOn(name)
	if err != nil {
		return nil, nil, err
	}
	previewed, err := preview.New(ctx, release, preview.Cluster{Config: set.Published(), Nodes: nodes})
	if err != nil {
		return nil, nil, err
	}
	return previewed.Create, previewed.Problems, nil
}

// isDividedAlike reports whether a template divides a pool into slices as it was.
func (d *draft) isDividedAlike(ctx context.Context, template *v1alpha1.ResourcePoolTemplate) (bool, error) {
	node := &corev1.Node{}
	if d.members != nil {
		node = fakeCopy(d.members[0].node)
		if err := markNode(node, d.values.driver, 0, d.values); err != nil {
			return false, err
		}
	}
	node.UID = "copy"
	made, problems, err := renderSlices(ctx, []*v1alpha1.ResourcePoolTemplate{template}, []*corev1.Node{node}, d.pools[:1])
	if err = errors.Join(append(problems, err)...); err != nil || len(made) != len(d.pools[0].slices) {
		return false, err
	}
	for i, slice := range d.pools[0].slices {
		if len(slice.Spec.Devices) != len(made[i].Spec.Devices) {
			return false, nil
		}
	}
	return true, nil
}

// comparePools renders the copy and compares it with the pools. It returns a reason for each pool with a
// device that would differ, and a note for each pool whose devices are in other slices.
func (f *fleet) comparePools(ctx context.Context, pools []*pool) (differ map[*pool]error, notes []string, err error) {
	nodes := f.nodes
	if len(nodes) == 0 { // a pool that nodes share is there while there is one
		nodes = []*corev1.Node{fakeCopy(&corev1.Node{})}
	}
	made, problems, err := renderSlices(ctx, f.templates, nodes, pools)
	if err != nil {
		refusals, rest := config.Refusals(err)
		if refused := f.listRefusedPools(refusals); rest == nil && len(refused) > 0 {
			return refused, nil, nil
		}
		return nil, nil, fmt.Errorf("render the copy: %w", err)
	}
	byName := map[string]*pool{}
	rendered, _ := groupPools(made, nil)
	for _, p := range rendered {
		byName[p.String()] = p
	}
	differ = map[*pool]error{}
	for _, p := range pools {
		again := byName[p.String()]
		delete(byName, p.String())
		switch {
		case again == nil:
			differ[p] = cmp.Or(append(problems, errNotPublished)...)
		case !again.hasSameContent(p):
			differ[p] = errOtherDevices
		case !slices.EqualFunc(again.slices, p.slices, func(a, b *resourcev1.ResourceSlice) bool {
			return len(a.Spec.Devices) == len(b.Spec.Devices) && len(a.Spec.SharedCounters) == len(b.Spec.SharedCounters)
		}):
			notes = append(notes, fmt.Sprintf("pool %s is divided into slices in another way: %d instead of %d", p, len(again.slices), len(p.slices)))
		}
	}
	if len(byName) > 0 {
		return nil, nil, fmt.Errorf("the copy has pools that nobody has published: %s", strings.Join(slices.Sorted(maps.Keys(byName)), "; "))
	}
	return differ, notes, nil
}

var (
	errNotPublished = errors.New("the copy would not publish it")
	errOtherDevices = errors.New("no template yields its devices, or not for the same nodes")
)

// content is what a pool says of a device or a counter set.
type content struct {
	// slice is the spec of the slice without its parts.
	slice  resourcev1.ResourceSliceSpec
	device resourcev1.Device
	set    resourcev1.CounterSet
}

// listContents returns the counter sets and devices of a pool in their order, with what their
// slices say of them.
func (p *pool) listContents() (sets, devices []content) {
	for _, slice := range p.slices {
		frame := resourcev1.ResourceSliceSpec{
			Driver: p.driver, NodeName: nilIfZero(slice.Spec.NodeName), NodeSelector: slice.Spec.NodeSelector,
			AllNodes: nilIfZero(slice.Spec.AllNodes), PerDeviceNodeSelection: nilIfZero(slice.Spec.PerDeviceNodeSelection),
			SkipNodeOperations: slice.Spec.SkipNodeOperations,
		}
		for _, set := range slice.Spec.SharedCounters {
			sets = append(sets, content{slice: frame, set: set})
		}
		for _, device := range slice.Spec.Devices {
			device.Taints = withoutTimes(device.Taints)
			one := content{slice: frame, device: device}
			if len(device.ConsumesCounters) > 0 {
				one.slice.PartitionTypeAttribute = slice.Spec.PartitionTypeAttribute
			}
			devices = append(devices, one)
		}
	}
	return sets, devices
}

// nilIfZero returns nil for a zero value, which means the same as no value.
func nilIfZero[T comparable](field *T) *T {
	if field == nil || *field == *new(T) {
		return nil
	}
	return field
}

// hasSameContent reports whether two pools have the same devices and counter sets, in
// the same order, for the same nodes.
func (p *pool) hasSameContent(other *pool) bool {
	sets, devices := p.listContents()
	otherSets, otherDevices := other.listContents()
	same := func(a, b content) bool {
		return apiequality.Semantic.DeepEqual(a.slice, b.slice) && apiequality.Semantic.DeepEqual(a.device, b.device) && apiequality.Semantic.DeepEqual(a.set, b.set)
	}
	return slices.EqualFunc(sets, otherSets, same) && slices.EqualFunc(devices, otherDevices, same)
}
