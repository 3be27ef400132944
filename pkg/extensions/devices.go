package extensions

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/pkg/app"
	"github.com/kwok-dra/kwok-dra/pkg/devicemetrics"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/inventory/live"
	"github.com/kwok-dra/kwok-dra/pkg/taintrules"
)

// deviceInventory has the state of each device, and metrics of them all.
type deviceInventory struct {
	drivers *realDrivers
	source  *inventory.Source
	rules   *taintrules.Watcher
}

func (d *deviceInventory) extension() app.Extension {
	return app.Extension{Start: func(core *app.Core) {
		d.rules = taintrules.NewWatcher(core.Client)
		d.source = live.NewSource(live.Options{Config: core.Config, Caches: core.Caches, Preparer: core.Preparer, Kubelets: d.drivers, TaintRules: d.rules})
		if core.IsServing { // or nobody would see them
			core.Add(app.Part{Run: d.rules.Run})
		}
		core.Collect(inventory.NewCollector(d.source))
	}}
}

// deviceMetrics serves what single devices do.
type deviceMetrics struct {
	views   *containerViews
	devices *deviceInventory
	serve   bool
}

func (m *deviceMetrics) extension() app.Extension {
	return app.Extension{
		FlagsAfter: "tls-private-key-file",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&m.serve, "metrics-devices", m.serve, "serve what devices do as metrics, at /metrics/devices and /metrics/nodes/NODE/devices; it takes memory and CPU for those who scrape them only")
		},
		Start: func(core *app.Core) {
			if !m.serve {
				return
			}
			devicemetrics.TellMistakes(core.Caches, core.Owner, core.Recorder)
			core.Handle(app.MetricsRoutes, devicemetrics.New(devicemetrics.Options{
				Config: core.Config, Caches: core.Caches, Owner: core.Owner, Drivers: m.views.driversOf, TaintRules: m.devices.rules.Rules,
				Now: time.Now, Max: devicemetrics.MaxDevices,
			}).Handler())
		},
	}
}
