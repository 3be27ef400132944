package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// lastWords tell the reader what to do with the demo. Each line that is indented
// is a command.
func lastWords(w *world.World, device *world.Break) string {
	return fmt.Sprintf(`Everything keeps running. The page with all devices, live:

    %s

To use kubectl and kwok-dractl, paste this into your shell:

  export KUBECONFIG=%s
  export PATH=%s:$PATH

See the devices, and which Pods have them:

  kwok-dractl status
  kwok-dractl status node %s

Break %s of %s, which Pod %s has:

  %s

Kubernetes evicts the Pod, and the Deployment replaces it. The new Pod gets
one of the %s. To see that:

  kubectl get pods -o wide
  kwok-dractl status node %s

Repair the device:

  %s

kwok-dra logs to %s

To remove all of it:

  make demo-down
`,
		w.Page, quote(w.Cluster.Kubeconfig()), quote(w.Path), device.Node,
		device.Device, device.Node, device.Pod, device.Taint(), free(device), device.Node, device.Repair(), w.Log)
}

// free says what the replacement of a Pod can get.
func free(device *world.Break) string {
	return fmt.Sprintf("%d free GPUs of the same kind, on %s", device.Free, strings.Join(device.Nodes, " or "))
}

// plain is a path that shells take as it is.
var plain = regexp.MustCompile(`^[\w/.+@-]+$`)

// quote makes a path one word of shell.
func quote(path string) string {
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
