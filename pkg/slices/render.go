package slices

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Renderer makes the slices that a Publisher would write to an API server that
// has none. It writes nothing itself, but asks with dry runs what the server
// keeps.
type Renderer struct {
	fields *serverFields
}

// NewRenderer makes a Renderer for the API server of a client. Dropped is called
// once for each template and field that the API server drops.
func NewRenderer(client kubernetes.Interface, dropped func(template, field string)) *Renderer {
	r := &Renderer{fields: &serverFields{
		client:  client.ResourceV1().ResourceSlices(),
		version: client.Discovery(),
		report: func(_ context.Context, _ *corev1.Node, source string, field *gatedField) {
			dropped(source, field.name)
		},
	}}
	r.fields.forget()
	return r
}

// Slices makes the slices of pools at generation 1: of a node's own pools, or of
// pools that nodes share.
func (r *Renderer) Slices(ctx context.Context, node *corev1.Node, pools []devices.Pool) ([]*resourcev1.ResourceSlice, error) {
	fitting, layout, err := r.fields.fit(ctx, node, pools)
	if err != nil {
		return nil, err
	}
	var all []*resourcev1.ResourceSlice
	for i := range fitting {
		h := nodeHolder(node)
		if fitting[i].SharedWith != nil {
			h = sharedHolder(&fitting[i])
		}
		made, err := newSlices(h, &fitting[i], layout)
		if err != nil {
			return nil, err
		}
		for _, slice := range made {
			slice.Spec.Pool.Generation = 1
		}
		all = append(all, made...)
	}
	return all, nil
}
