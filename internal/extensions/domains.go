package extensions

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/computedomains"
)

// playComputeDomains plays the node's half of NVIDIA's ComputeDomains.
func playComputeDomains() app.Extension {
	var (
		isPlayed   bool
		controller *computedomains.Controller
	)
	return app.Extension{
		FlagsAfter:  "manage-single-node",
		ClusterRole: "kwok-dra-compute-domains",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&isPlayed, "compute-domains", isPlayed, "play the node's half of NVIDIA's ComputeDomains, beside NVIDIA's own compute-domain-controller: Pods wait for the daemon on their node, and daemons report themselves; it takes two more watches, and a few writes for each node of a ComputeDomain")
		},
		Provide: func(core *app.Core) {
			if !isPlayed {
				return
			}
			controller = computedomains.New(computedomains.Options{Client: core.Client, Objects: core.Objects, Caches: core.Caches, Owner: core.Owner})
			core.Gate = controller
		},
		Start: func(core *app.Core) {
			if isPlayed {
				core.Add(app.Part{Run: func(ctx context.Context) { controller.Run(ctx, core.Workers) }, Check: controller.CheckHealth})
			}
		},
	}
}
