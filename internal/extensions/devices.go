package extensions

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicemetrics"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/live"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
)

// deviceInventory holds the state of each device.
type deviceInventory struct {
	drivers *realDrivers
	source  *inventory.Source
	rules   *taintrules.Watcher
}

// takeInventories takes the inventory that other extensions show, and serves metrics of it.
func takeInventories(d *deviceInventory) app.Extension {
	return app.Extension{ClusterRole: "kwok-dra-device-taints", Start: func(core *app.Core) {
		d.rules = taintrules.NewWatcher(core.Client)
		d.source = live.NewSource(live.Options{Config: core.Config, Caches: core.Caches, Preparer: core.Preparer, Kubelets: d.drivers, TaintRules: d.rules})
		if core.IsServing { // otherwise nobody sees the rules
			core.Add(app.Part{Run: d.rules.Run})
		}
		core.Collect(inventory.NewCollector(d.source))
	}}
}

// serveDeviceMetrics serves what single devices do.
func serveDeviceMetrics(views *containerViews, devices *deviceInventory) app.Extension {
	isServed := true
	return app.Extension{
		FlagsAfter: "server-address",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&isServed, "metrics-devices", isServed, "serve what devices do as metrics, at /metrics/devices and /metrics/nodes/NODE/devices; it takes memory and CPU for those who scrape them only")
		},
		Start: func(core *app.Core) {
			if !isServed {
				return
			}
			mistakes := devicemetrics.NewMistakeReporter(devicemetrics.MistakeOptions{Client: core.Client, Caches: core.Caches, Owner: core.Owner})
			core.Add(app.Part{Run: func(ctx context.Context) { mistakes.Run(ctx, core.Workers) }, Check: mistakes.CheckHealth})
			core.Handle(app.MetricsRoutes, devicemetrics.New(devicemetrics.Options{
				Config: core.Config, Caches: core.Caches, Owner: core.Owner, Drivers: views.driversOf, TaintRules: devices.rules.Rules,
				Now: time.Now, Max: devicemetrics.MaxDevices,
			}).Handler())
		},
	}
}
