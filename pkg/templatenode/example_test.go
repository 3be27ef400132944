package templatenode_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
)

// An autoscaler asks which devices a node would have before it creates the node.
func Example() {
	ctx := context.Background()
	templates, err := templatenode.ReadTemplates(ctx, "../../kustomize/profiles/gpu-example/template.yaml")
	if err != nil {
		panic(err)
	}
	client := fake.NewClientset() // in an autoscaler: the client of the cluster
	renderer := templatenode.New(client, templates)

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        "next",
		Labels:      map[string]string{"dra.kwok.x-k8s.io/profile": "gpu-example"},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
	rendered, err := renderer.Render(ctx, node)
	if err != nil {
		panic(err)
	}
	for _, slice := range rendered.Slices {
		fmt.Printf("%d devices of %s in pool %s\n", len(slice.Spec.Devices), slice.Spec.Driver, slice.Spec.Pool.Name)
	}
	// Output: 8 devices of gpu.example.com in pool next
}
