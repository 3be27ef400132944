package generate

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
)

// source is what there is to copy.
type source struct {
	nodes  []*corev1.Node
	slices []*resourcev1.ResourceSlice
	// left is what of the files is no part of a copy.
	left []leftOut
}

// readSource reads the nodes and the slices of the cluster, or of documents.
func (c *command) readSource(ctx context.Context, all []documents.Document) (*source, error) {
	if c.fromCluster {
		defer c.streams.Progress("reading the cluster", 0).Done()
		return c.listCluster(ctx)
	}
	objects, err := documents.Objects(all)
	if err != nil {
		return nil, err
	}
	read, once := &source{}, documents.Once{}
	for _, object := range objects {
		kind := object.GroupVersionKind().GroupKind().String()
		if err := once.Add(object, ""); err != nil && (kind == "Node" || kind == "ResourceSlice.resource.k8s.io") {
			read.leaveOutObject(object, "one of this name was there before")
			continue
		}
		switch kind {
		case "Node":
			node := &corev1.Node{}
			if err := object.Into(node); err != nil {
				read.leaveOutObject(object, object.Problem(err))
				continue
			}
			read.nodes = append(read.nodes, node)
		case "ResourceSlice.resource.k8s.io":
			read.addSlice(object)
		default:
			read.left = append(read.left, leftOut{kind: object.GetKind(), name: object.GetName(), reason: "only Nodes and ResourceSlices are copied"})
		}
	}
	return read, nil
}

func (c *command) listCluster(ctx context.Context) (*source, error) {
	client, err := c.reach.Client()
	if err != nil {
		return nil, err
	}
	nodeList, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	sliceList, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	return &source{nodes: cluster.Pointers(nodeList.Items), slices: cluster.Pointers(sliceList.Items)}, nil
}

// leaveOutObject leaves out an object of a file.
func (s *source) leaveOutObject(object documents.Object, reason string) {
	s.left = append(s.left, leftOut{kind: object.GetKind(), name: strings.TrimSpace(object.GetName() + " in " + object.Where), reason: reason})
}

// addSlice adds a slice, and what of it this version does not know.
func (s *source) addSlice(object documents.Object) {
	slice := &resourcev1.ResourceSlice{}
	unknown, err := object.Convert(slice)
	if err != nil {
		s.leaveOutObject(object, object.Problem(err))
		return
	}
	s.slices = append(s.slices, slice)
	for _, field := range unknown {
		s.left = append(s.left, leftOut{kind: "field", name: field + " of " + slice.Name, reason: "this version does not know it"})
	}
}
