package harness

import (
	"fmt"
	"strings"
)

// Knobs has Pods with the label hold wait, and those with the label fail fail.
const Knobs = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: KwokDRAConfiguration
metadata: {name: knobs}
spec:
  prepareWhen: {matchExpressions: [{key: .metadata.labels.hold, operator: DoesNotExist}]}
  failWhen: {matchLabels: {fail: "true"}}
  retryInterval: 2s
`

// Scene makes a namespace, a node and a template of that name, with a
// claimStatus, and waits for the slices.
func (h *H) Scene(name, claimStatus string) {
	h.Helper()
	h.SceneOf(name, Driver, GPUs(8), claimStatus)
}

// SceneOf is Scene with a driver and devices of choice.
func (h *H) SceneOf(name, driver, devices, claimStatus string) {
	h.Helper()
	h.Configure(name, WithSpec(Template(name, driver, name, devices), claimStatus))
	h.CreateNode(name, name)
	h.Published(name, driver, countOf(devices))
	h.Namespace(name, driver)
}

// countOf is the count of the only device group, or 1.
func countOf(devices string) int {
	count := 1
	if _, text, found := strings.Cut(devices, "count: "); found {
		_, _ = fmt.Sscan(text, &count)
	}
	return count
}
