package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/selection"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// AddManaged adds the sidecar's options that choose the fake nodes.
func AddManaged(command *cobra.Command, managed *lifecycle.ManagedNodes) {
	flags := command.Flags()
	flags.BoolVar(&managed.All, "manage-all-nodes", false, "all nodes are fake; this and the next three options are those of kwok and kwok-dra")
	flags.StringVar(&managed.Annotations, "manage-nodes-with-annotation-selector", "",
		"nodes with these annotations are fake; with the next option too, nodes that match both; default without any of these four options: "+lifecycle.DefaultAnnotationSelector)
	flags.StringVar(&managed.Labels, "manage-nodes-with-label-selector", "", "nodes with these labels are fake")
	flags.StringVar(&managed.Single, "manage-single-node", "", "the node of this name is fake")
}

// FromDocuments reads the nodes in documents, and the Pods that may be of drivers. A node
// without a uid gets one made from its name.
func FromDocuments(all []documents.Document) ([]*corev1.Node, DriverPods, error) {
	objects, err := documents.Objects(all)
	if err != nil {
		return nil, nil, err
	}
	var nodes []*corev1.Node
	var pods DriverPods
	once := documents.Once{}
	for _, object := range objects {
		if object.GetKind() != "Node" {
			if err := pods.Add(object); err != nil {
				return nil, nil, err
			}
			continue
		}
		node := &corev1.Node{}
		if err := cmp.Or(object.Into(node), once.Add(object, "")); err != nil {
			return nil, nil, err
		}
		if node.UID == "" {
			node.UID = UID(node.Name)
		}
		nodes = append(nodes, node)
	}
	return nodes, pods, nil
}

// TellUnselected says which templates select no node, and by what they miss.
func TellUnselected(streams cli.Streams, templates []*devices.Template, nodes []*corev1.Node) {
	for _, unselected := range selection.Of(templates, slices.Values(nodes)) {
		streams.Tell("%s\n", unselected.String())
	}
}

// List lists the nodes that the sidecar would list, of which some may not be fake.
func List(ctx context.Context, client kubernetes.Interface, managed *lifecycle.ManagedNodes) ([]*corev1.Node, error) {
	var options metav1.ListOptions
	managed.Tweak(&options)
	list, err := client.CoreV1().Nodes().List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return cluster.Pointers(list.Items), nil
}

// Fake are the nodes that kwok manages, as the sidecar sees them.
func Fake(nodes []*corev1.Node, managed *lifecycle.ManagedNodes) ([]*corev1.Node, error) {
	var fake []*corev1.Node
	for _, node := range nodes {
		if managed.Matches(node) {
			lifecycle.Slim(node)
			fake = append(fake, node)
		}
	}
	if len(fake) == 0 && len(nodes) > 0 {
		return nil, fmt.Errorf("of %d nodes none is fake, by %s: annotate them, or choose nodes with --manage-all-nodes or another --manage option", len(nodes), managed)
	}
	return fake, nil
}
