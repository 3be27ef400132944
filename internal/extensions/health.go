package extensions

import (
	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicehealth"
)

// showDeviceHealth shows the health of devices in the status of Pods.
func showDeviceHealth() app.Extension {
	var server devicehealth.Server
	return app.Extension{
		Provide: func(core *app.Core) { core.DeviceHealth = &server },
		Start:   func(core *app.Core) { core.Add(app.Part{Run: server.Run}) },
	}
}
