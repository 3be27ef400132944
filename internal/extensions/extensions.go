package extensions

import (
	"github.com/kwok-dra/kwok-dra/internal/app"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/parameters"     // it checks opaque parameters
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/templatefields" // it checks what Go templates read
)

// All returns the extensions of one sidecar. An extension may use those before it.
func All() []app.Extension {
	pods, drivers := &driverPods{}, &realDrivers{}
	views := &containerViews{pods: pods, drivers: drivers}
	devices := &deviceInventory{drivers: drivers}
	explanations := &explanations{pods: pods, drivers: drivers}
	return []app.Extension{
		readKarpenterFormats(),
		watchDriverPods(pods),
		runRealDrivers(drivers),
		showDeviceHealth(),
		showContainerViews(views),
		servePodResources(views),
		playComputeDomains(),
		serveSecurely(),
		warnOfMemoryLimit(),
		sendNodeLoad(),
		takeInventories(devices),
		serveDeviceMetrics(views, devices),
		explainPods(explanations),
		explainTemplates(),
		servePage(devices, explanations),
	}
}
