package extensions

import (
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/podresources"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
)

// servePodResources answers on the PodResources socket of each node that has a folder.
func servePodResources(views *containerViews) app.Extension {
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
			server := podresources.New(core.Client, func(node string) podresources.Prepared { return views.preparedOn(core, node) })
			views.drivers.RunBeside(server.ServeNode)
			core.Add(app.Part{Run: server.Run})
		},
	}
}

// preparedOn returns what the drivers of a node have prepared now, real ones and those with templates.
func (v *containerViews) preparedOn(core *app.Core, name string) podresources.Prepared {
	set, node := core.Config.Current(), core.Caches.Nodes.Get(name)
	var templates podresources.Templates
	if set != nil && node != nil {
		templates = v.templatesOn(set, node)
	}
	return func(pod *corev1.Pod, claim string) *claiminfo.Info {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: claim}
		info := v.drivers.PreparedClaim(name, key)
		if templates == nil {
			return info
		}
		var found *resourcev1.ResourceClaim
		if observed := core.Caches.Claims.Observed(key); observed != nil {
			found = observed.Decode()
		}
		return podresources.AddTemplates(info, pod, found, templates)
	}
}
