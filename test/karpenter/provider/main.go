// Command provider is Karpenter with its KWOK provider, as Karpenter's own kwok
// command starts it, whose instance types have the devices of
// ResourcePoolTemplates.
package main

import (
	"context"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/log"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"

	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
	"github.com/kwok-dra/kwok-dra/test/karpenter/instancetypes"
)

func main() {
	ctx, op := operator.NewOperator()
	provider, err := newProvider(ctx, op)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot make the provider")
		os.Exit(1)
	}
	decorated := overlay.Decorate(provider, op.GetClient(), op.InstanceTypeStore)
	clusterState := state.NewCluster(op.Clock, op.GetClient(), decorated)
	op.
		WithControllers(ctx, controllers.NewControllers(
			ctx,
			op.Manager,
			op.Clock,
			op.GetClient(),
			op.EventRecorder,
			decorated,
			provider,
			clusterState,
			op.InstanceTypeStore,
		)...).Start(ctx)
}

func newProvider(ctx context.Context, op *operator.Operator) (cloudprovider.CloudProvider, error) {
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		return nil, err
	}
	templates, err := templatenode.ReadTemplates(ctx, templatePaths(ctx)...)
	if err != nil {
		return nil, err
	}
	devices := instancetypes.NewDevices(op.KubernetesInterface, templates)
	return instancetypes.Decorate(kwok.NewCloudProvider(ctx, op.GetClient(), types), devices), nil
}
