package extensions

import (
	"context"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/podresources"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
)

// servePodResources answers on the PodResources socket of each node that has a folder.
func servePodResources(drivers *realDrivers) app.Extension {
	isServed := false
	return app.Extension{
		FlagsAfter: "manage-single-node",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&isServed, "pod-resources", isServed, "serve the kubelet's PodResources API in the folder of each fake node, at pod-resources/kubelet.sock; it needs --plugins-dir or pluginsDir of the configuration, and one more watch of Pods")
		},
		Start: func(core *app.Core) {
			if !isServed {
				return
			}
			server := podresources.New(core.Client, func(node string) podresources.Prepared {
				set := core.Config.Current()
				return func(pod *corev1.Pod, name string) *claiminfo.Info {
					key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
					var claim *resourcev1.ResourceClaim
					if found, err := core.Caches.Claims.Get(key); err == nil {
						claim = found
					}
					return podresources.AddTemplates(drivers.PreparedClaim(node, key), pod, claim, func(driver string) bool { return set != nil && set.HasDriver(driver) })
				}
			})
			drivers.RunBeside(server.ServeNode)
			core.Add(app.Part{Run: func(ctx context.Context) { server.Run(ctx) }})
		},
	}
}
