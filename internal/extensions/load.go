package extensions

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/nodeload"
)

// sendNodeLoad loads the API server as kubelets and drivers on the fake nodes would.
func sendNodeLoad() app.Extension {
	var (
		isSent     bool
		restConfig func() (*rest.Config, error)
	)
	return app.Extension{
		FlagsAfter:  "manage-single-node",
		ClusterRole: "kwok-dra-node-load",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&isSent, "node-load", isSent, "send the requests that the kubelet and the drivers of each fake node would send, under their identities, so that the API server is loaded as by real nodes; it takes six watches or more for each node, and needs rights to impersonate nodes and drivers")
		},
		Complete: func(options *app.Options) error {
			restConfig = options.RESTConfig
			return nil
		},
		Start: func(core *app.Core) {
			metrics := nodeload.NewMetrics()
			core.Collect(metrics)
			if !isSent {
				return
			}
			controller := nodeload.New(nodeload.Options{Client: core.Client, Caches: core.Caches, Owner: core.Owner, Metrics: metrics})
			core.Add(app.Part{Check: controller.CheckHealth, Run: func(ctx context.Context) {
				config, err := restConfig()
				if err == nil {
					err = controller.Run(ctx, config, core.Workers)
				}
				if err != nil && ctx.Err() == nil {
					klog.FromContext(ctx).Error(err, "Failed to send the requests of --node-load; restart kwok-dra")
				}
			}})
		},
	}
}
