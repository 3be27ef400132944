package harness

import (
	"fmt"
	"strings"
)

// Template is a ResourcePoolTemplate for nodes with the label kind=<kind>.
func Template(name, driver, kind, devices string) string {
	return fmt.Sprintf(`
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: %s}
spec:
  driver: %s
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: kind, operator: In, values: [%s]}]}]}
  devices: %s
---
`, name, driver, kind, devices)
}

// WithSpec adds fields to the spec of a template.
func WithSpec(template, fields string) string {
	if fields == "" {
		return template
	}
	return strings.Replace(template, "spec:", "spec:\n  "+fields, 1)
}

// Driver is the driver of most tests.
const Driver = "gpu.example.com"

// GPUs returns the device groups of a template with that many GPUs.
func GPUs(count int) string {
	return fmt.Sprintf(`[{name: gpu, count: %d, attributes: {model: H100, index: {int: "{{ .Index }}"}, uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"}, capacity: {memory: 80Gi}}]`, count)
}
