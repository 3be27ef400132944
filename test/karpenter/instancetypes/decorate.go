package instancetypes

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// Decorate makes a provider whose instance types have devices, and all else from
// the given provider.
func Decorate(provider cloudprovider.CloudProvider, devices *Devices) cloudprovider.CloudProvider {
	return &decorator{CloudProvider: provider, devices: devices, filled: map[string]filled{}}
}

type decorator struct {
	cloudprovider.CloudProvider
	devices *Devices

	mu sync.Mutex
	// filled is by the name of the NodePool. Karpenter asks every few seconds, and of
	// instance types there may be thousands.
	filled map[string]filled
}

// filled are instance types with their devices, and what they were made for.
type filled struct {
	uid        types.UID
	generation int64
	from, to   []*cloudprovider.InstanceType
}

// GetInstanceTypes implements cloudprovider.CloudProvider.
func (d *decorator) GetInstanceTypes(ctx context.Context, nodePool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	from, err := d.CloudProvider.GetInstanceTypes(ctx, nodePool)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	last, found := d.filled[nodePool.Name]
	if !found || last.uid != nodePool.UID || last.generation != nodePool.Generation || !slices.Equal(last.from, from) {
		last = filled{nodePool.UID, nodePool.Generation, from, d.devices.Fill(ctx, nodePool, from)}
		d.filled[nodePool.Name] = last
	}
	return last.to, nil
}
