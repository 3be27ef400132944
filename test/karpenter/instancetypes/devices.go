// Package instancetypes gives the instance types of a cloud provider of
// Karpenter's the devices that kwok-dra publishes for their nodes. So Karpenter
// makes nodes for Pods that claim devices, which its KWOK provider alone cannot.
package instancetypes

import (
	"context"
	"sync"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
)

// Devices makes the devices of nodes that do not exist yet.
type Devices struct {
	renderer *templatenode.Renderer
	// told are the dropped fields that the log tells of.
	told sync.Map
}

// NewDevices makes Devices of templates. Dry runs find out which fields of
// devices the API server of the client keeps, as kwok-dra does.
func NewDevices(client kubernetes.Interface, templates []*devices.Template) *Devices {
	return &Devices{renderer: templatenode.New(client, templates)}
}

// Fill returns copies of instance types with the devices of their nodes in a
// NodePool. A type for which a template cannot be rendered is without devices, as
// its nodes will be, and the log says why.
func (d *Devices) Fill(ctx context.Context, nodePool *v1.NodePool, types []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	filled := make([]*cloudprovider.InstanceType, len(types))
	for i, it := range types {
		templates, err := d.Of(ctx, nodePool, it)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot tell the devices of an instance type", "instanceType", it.Name, "nodePool", nodePool.Name)
		}
		filled[i] = it.DeepCopy()
		filled[i].DynamicResources.ResourceSliceTemplates = append(filled[i].DynamicResources.ResourceSliceTemplates, templates...)
	}
	return filled
}

// Of makes the devices of an instance type's nodes in a NodePool. Pools that
// nodes share are not among them: they are no part of a node.
func (d *Devices) Of(ctx context.Context, nodePool *v1.NodePool, it *cloudprovider.InstanceType) ([]*cloudprovider.ResourceSliceTemplate, error) {
	rendered, err := d.renderer.Render(ctx, syntheticNode(nodePool, it))
	d.tellDropped(ctx, rendered.Dropped)
	var all []*cloudprovider.ResourceSliceTemplate
	for _, slice := range rendered.Slices {
		all = append(all, sliceTemplates(&slice.Spec)...)
	}
	return all, err
}

func (d *Devices) tellDropped(ctx context.Context, all []features.Dropped) {
	for _, dropped := range all {
		if _, told := d.told.LoadOrStore(dropped, true); !told {
			log.FromContext(ctx).Info("The API server drops a field of devices", "template", dropped.Source, "field", dropped.Field.Name)
		}
	}
}
