package resourceslice

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
)

// observer is what plans are made from. It writes nothing.
type observer struct {
	config *config.Store
	caches *observe.Caches
	// live is for what a cache that lags does not have.
	live typedcorev1.NodeInterface
	// changes counts what changes Nodes and Slices.
	changes atomic.Uint64
}

// existsLive asks whether there is a fake node that the cache does not have. The
// slices that another replica has just made for one may be seen before it.
func (o *observer) existsLive(ctx context.Context, name string) (bool, error) {
	node, err := o.live.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get node %s: %w", name, err)
	}
	return o.caches.Nodes.Fake(node), nil
}

// Nodes names the fake nodes.
func (o *observer) Nodes() []string {
	nodes := o.caches.Nodes
	return slices.DeleteFunc(nodes.Names(), func(name string) bool { return !nodes.Has(name) })
}

// Slices are the slices that are published, by what the cache says.
func (o *observer) Slices() []inventory.Slice {
	var all []inventory.Slice
	for slice := range o.caches.Slices.All() {
		all = append(all, inventory.Slice{
			Node:       slice.NodeName,
			Driver:     slice.Driver,
			Pool:       slice.Pool.Name,
			Name:       slice.Name,
			Generation: slice.Pool.Generation,
			Count:      slice.Pool.ResourceSliceCount,
			Devices:    slice.Names,
			Taints:     slice.Taints,
		})
	}
	return all
}

// Changes counts what changes Nodes and Slices.
func (o *observer) Changes() uint64 {
	return o.changes.Load()
}
