// Package instancetypes gives the instance types of a cloud provider of
// Karpenter's the devices that kwok-dra publishes for their nodes. So Karpenter
// makes nodes for Pods that claim devices, which its KWOK provider alone cannot.
package instancetypes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// Devices makes the devices of nodes that do not exist yet.
type Devices struct {
	templates []*devices.Template
	prober    *resourceslice.Prober
	// told are the dropped fields that the log tells of.
	told sync.Map
}

// NewDevices makes Devices of templates. Dry runs find out which fields of
// devices the API server of the client keeps, as kwok-dra does.
func NewDevices(client kubernetes.Interface, templates []*devices.Template) *Devices {
	return &Devices{templates: templates, prober: resourceslice.NewProber(client)}
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
	node := syntheticNode(nodePool, it)
	object := lifecycle.NodeObject(node)
	byDriver := devices.ForDriver(d.templates, node)
	var all []*cloudprovider.ResourceSliceTemplate
	var errs []error
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		pools, err := poolsOf(byDriver[driver], object)
		if err != nil {
			errs = append(errs, fmt.Errorf("render driver %s: %w", driver, err))
			continue
		}
		needs, err := plan.New(ctx, d.prober, node, pools, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("lay out driver %s: %w", driver, err))
			continue
		}
		d.tellDropped(ctx, needs.Dropped)
		for _, slice := range needs.Create {
			all = append(all, sliceTemplates(&slice.Spec)...)
		}
	}
	return all, errors.Join(errs...)
}

// poolsOf are a driver's pools on a node. Templates that clash are an error.
func poolsOf(templates []*devices.Template, node *lifecycle.Object) ([]devices.Pool, error) {
	taints, err := devices.TaintsOf(node)
	if err != nil {
		return nil, err
	}
	pools, refusals, err := devices.Standing(templates, node, taints)
	if len(refusals) > 0 {
		return nil, refusals[0].Err
	}
	return pools, err
}

func (d *Devices) tellDropped(ctx context.Context, all []features.Dropped) {
	for _, dropped := range all {
		if _, told := d.told.LoadOrStore(dropped, true); !told {
			log.FromContext(ctx).Info("The API server drops a field of devices", "template", dropped.Source, "field", dropped.Field.Name)
		}
	}
}
