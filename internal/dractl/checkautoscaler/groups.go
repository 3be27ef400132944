package checkautoscaler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/input"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
)

// defaultPods is how many Pods a kubelet admits by default.
const defaultPods = "110"

// group is a set of equal nodes, of which the autoscaler makes as many as are needed. The name of the example is the group's.
type group struct{ drajudge.NewNode }

// hasNode reports whether a node has all labels of the group.
func (g *group) hasNode(node *corev1.Node) bool {
	for key, value := range g.Node.Labels {
		if found, has := node.Labels[key]; !has || found != value {
			return false
		}
	}
	return true
}

// devicesByDriver returns the devices of a node.
func devicesByDriver(all []*resourcev1.ResourceSlice) map[string][]resourcev1.Device {
	devices := map[string][]resourcev1.Device{}
	for _, slice := range all {
		if len(slice.Spec.Devices) > 0 {
			devices[slice.Spec.Driver] = append(devices[slice.Spec.Driver], slice.Spec.Devices...)
		}
	}
	return devices
}

// drivers are those of the group's devices.
func (g *group) drivers() []string {
	return slices.Sorted(maps.Keys(devicesByDriver(g.Slices)))
}

// readGroups reads a group from each Node of the files. Its devices are those that the ResourcePoolTemplates of the files
// give to such a node, and those of the ResourceSlices that name it.
func readGroups(ctx context.Context, streams cli.Streams, files documents.Files, client kubernetes.Interface) ([]*group, error) {
	read, err := files.Read(streams)
	if err != nil {
		return nil, err
	}
	var templates []*config.Documents
	in := input.New(metav1.NamespaceDefault)
	in.AddOther = func(object documents.Object, document *documents.Document) (isKnown bool, err error) {
		if object.GroupVersionKind().Group != v1alpha1.GroupName {
			return false, nil
		}
		decoded, err := config.Decode(document.Where(), document.Data)
		if err != nil {
			return true, err
		}
		templates = append(templates, decoded)
		return true, in.Once.Add(object, "")
	}
	if err := in.AddDocuments(read); err != nil {
		return nil, err
	}
	configured, err := config.NewSet(templates...)
	if err != nil {
		return nil, err
	}
	renderer := templatenode.New(client, configured.Templates)
	var groups []*group
	for _, node := range in.Nodes {
		g, err := newGroup(ctx, node, in.Slices, renderer)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *group) int { return cmp.Compare(a.Node.Name, b.Node.Name) })
	return groups, checkGroups(groups)
}

func newGroup(ctx context.Context, node *corev1.Node, given []*resourcev1.ResourceSlice, renderer *templatenode.Renderer) (*group, error) {
	if len(node.Labels) == 0 {
		return nil, fmt.Errorf("group %s: metadata.labels of the Node: must have the labels that only nodes of this group have", node.Name)
	}
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = corev1.ResourceList{}
	}
	if _, has := node.Status.Allocatable[corev1.ResourcePods]; !has {
		node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse(defaultPods)
	}
	// Templates may read what only nodes that exist have.
	example := node.DeepCopy()
	example.UID = cmp.Or(node.UID, fleet.UID(node.Name))
	example.Labels[corev1.LabelHostname] = cmp.Or(node.Labels[corev1.LabelHostname], node.Name)
	rendered, err := renderer.Render(ctx, example)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", node.Name, err)
	}
	g := &group{drajudge.NewNode{Node: node, Slices: rendered.Slices}}
	for i, slice := range g.Slices { // those of templates have generated names
		slice.Name = fmt.Sprintf("%s-%d", node.Name, i)
	}
	for _, slice := range given {
		if slice.Spec.NodeName != nil && *slice.Spec.NodeName == node.Name {
			g.Slices = append(g.Slices, slice)
		}
	}
	if len(g.drivers()) == 0 {
		return nil, fmt.Errorf("group %s: its nodes have no devices: give a ResourcePoolTemplate that selects the Node, or a ResourceSlice with nodeName: %s", node.Name, node.Name)
	}
	return g, nil
}

// checkGroups refuses groups that cannot be told apart.
func checkGroups(groups []*group) error {
	if len(groups) == 0 {
		return errors.New("the files of --filename have no group: give a Node for each, with the labels of its nodes")
	}
	for _, g := range groups {
		for _, other := range groups {
			if g != other && g.hasNode(other.Node) {
				return fmt.Errorf("group %s: a node of group %s has all its labels too: add a label that tells them apart", g.Node.Name, other.Node.Name)
			}
		}
	}
	return nil
}
