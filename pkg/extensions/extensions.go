// Package extensions has what kwok-dra has beside its core: each is made here from a package of its
// own, and added to the sidecar.
package extensions

import (
	"github.com/kwok-dra/kwok-dra/pkg/app"
)

// All are the extensions of kwok-dra, for one sidecar. One may use those before it.
func All() []app.Extension {
	pods, drivers := &driverPods{}, &realDrivers{}
	views := &containerViews{pods: pods, drivers: drivers}
	devices := &deviceInventory{drivers: drivers}
	explanations := &explanations{pods: pods, drivers: drivers}
	return []app.Extension{
		(&karpenterFormats{}).extension(),
		pods.extension(),
		drivers.extension(),
		views.extension(),
		devices.extension(),
		(&deviceMetrics{serve: true, views: views, devices: devices}).extension(),
		explanations.extension(),
		(&webPage{devices: devices, explanations: explanations}).extension(),
	}
}
