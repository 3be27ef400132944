package main

import (
	"fmt"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// lastWords tell the reader what to do with the demo. Each line that is indented
// is a command.
func lastWords(w *world.World, access string, device *world.Break) string {
	containers := ""
	if w.ShowsContainers {
		containers = `Look into a container. None runs on a fake node, but kwok shows what it would be given:

  kubectl logs deployment/training
  kubectl exec deployment/training -- nvidia-smi

`
	}
	return fmt.Sprintf(`Everything keeps running. %s
See the devices, and which Pods have them:

  kwok-dractl status
  kwok-dractl status node %s

%sBreak %s of %s, which Pod %s has:

  %s

Kubernetes evicts the Pod, and the Deployment replaces it. The new Pod gets
one of the %s. To see that:

  kubectl get pods -o wide
  kwok-dractl status node %s

Repair the device:

  %s

kwok-dra logs to %s

"make demo" shows again where all of it is, "make demo-new" starts afresh. To remove it:

  make demo-down
`,
		access, device.Node, containers,
		device.Device, device.Node, device.Pod, device.Taint(), freeDevicesText(device), device.Node, device.Repair(), w.Sidecar.Log)
}

// freeDevicesText says what the replacement of a Pod can get.
func freeDevicesText(device *world.Break) string {
	return fmt.Sprintf("%d free GPUs of the same kind, on %s", device.Free, strings.Join(device.Nodes, " or "))
}
