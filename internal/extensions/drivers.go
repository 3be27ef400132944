package extensions

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/claims"
	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/injections"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/view"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubeletmetrics"
)

// driverPods watches the Pods of drivers that templates name.
type driverPods struct{ *driverpods.Pods }

// watchDriverPods watches the driver Pods of templates that name some.
func watchDriverPods(d *driverPods) app.Extension {
	return app.Extension{
		Provide: func(core *app.Core) {
			d.Pods = driverpods.New(core.Client, core.Config, core.Caches.Slices)
			core.DriverPods = d.Pods
		},
		Start: func(core *app.Core) {
			core.Add(app.Part{Run: d.Run})
			core.Collect(d.Pods)
		},
	}
}

// realDrivers plays the kubelet for real drivers.
type realDrivers struct{ *kubelet.Kubelets }

// Driver implements live.Kubelets.
func (r *realDrivers) Driver(pod *corev1.Pod, fake *corev1.Node, hasTemplates func(driver string) bool) plan.Driver {
	return r.Kubelets.Driver(pod, fake, hasTemplates)
}

// runRealDrivers runs real drivers below a directory, and serves the kubelet's own metrics of them.
func runRealDrivers(r *realDrivers) app.Extension {
	var directory string
	return app.Extension{
		FlagsAfter:  "manage-single-node",
		ClusterRole: "kwok-dra-real-drivers",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.StringVar(&directory, "plugins-dir", directory, "directory in which each fake node has a folder for the plugins of real DRA drivers, as below a kubelet's root directory; default: pluginsDir of the configuration, or none")
		},
		SourceHint: "for real drivers, --plugins-dir DIR",
		Complete: func(options *app.Options) error {
			if directory == "" {
				return nil
			}
			options.IsPublishing = true
			if _, err := root.OpenDirectory(directory); err != nil {
				return fmt.Errorf("parse --plugins-dir: %w", err)
			}
			return nil
		},
		Provide: func(core *app.Core) {
			metrics := kubeletmetrics.New()
			r.Kubelets = kubelet.New(kubelet.Options{
				Client: core.Client, Config: core.Config, Caches: core.Caches, Owner: core.Owner, Recorder: core.Recorder,
				Directory: directory, WipeDelay: kubelet.WipeDelay, KubeletMetrics: metrics,
			})
			metrics.AllHaveTemplates = func(driver string) bool {
				set := core.Config.Current()
				return !r.Enabled() && set != nil && set.HasDriver(driver)
			}
			core.Kubelets, core.KubeletRecorder = r.Kubelets, kubeletRecorder{metrics}
			core.Collect(metrics)
		},
		Start: func(core *app.Core) {
			core.Add(app.Part{Run: func(ctx context.Context) { r.Run(ctx, core.Workers) }, Check: r.CheckHealth})
			core.Collect(r.Metrics())
		},
	}
}

// kubeletRecorder gives the controller of claims the metrics of a kubelet.
type kubeletRecorder struct{ *kubeletmetrics.Metrics }

func (r kubeletRecorder) NewPod() claims.PodRecorder { return r.Metrics.NewPod() }

// containerViews knows what containers see of their devices.
type containerViews struct {
	pods    *driverPods
	drivers *realDrivers
}

// showContainerViews shows through kwok what containers see of their devices.
func showContainerViews(v *containerViews) app.Extension {
	var directory string
	return app.Extension{
		FlagsAfter:  "manage-single-node",
		ClusterRole: "kwok-dra-container-view",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.StringVar(&directory, "container-view", directory, "directory that kwok has under the same path, for what kubectl logs and kubectl exec show of the devices of containers; it takes two writes for each Pod with claims; default: containerView of the configuration, or none")
		},
		Complete: func(*app.Options) error {
			if directory == "" {
				return nil
			}
			if _, err := view.OpenDirectory(directory); err != nil {
				return fmt.Errorf("parse --container-view: %w", err)
			}
			return nil
		},
		Start: func(core *app.Core) {
			views := view.New(view.Options{
				Client: core.Objects, Config: core.Config, Caches: core.Caches, Owner: core.Owner,
				Drivers: v.driversOf, Shared: v.drivers.Shared, Directory: directory,
			})
			core.Add(app.Part{Run: func(ctx context.Context) { views.Run(ctx, core.Workers) }, Check: views.CheckHealth})
		},
	}
}

// driversOf returns what the drivers of a node inject, or nil while the drivers are not known.
func (v *containerViews) driversOf(set *config.Set, node *corev1.Node) containerview.Drivers {
	return v.drivers.View(node, &injections.Templates{Driver: v.templatesOn(set, node)})
}

// templatesOn returns the drivers of a node that have templates, without those that are real there.
func (v *containerViews) templatesOn(set *config.Set, node *corev1.Node) *templates.Driver {
	driver := templates.New(set, node, templates.Slices{}, v.pods.On(node.Name))
	if v.drivers.Enabled() {
		driver.IsReal = v.drivers.Driver(nil, node, set.HasDriver).Has
	}
	return driver
}
