package adapters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const nodeOverlays = "nodeoverlays.karpenter.sh"

// overlay is a NodeOverlay for an instance type with one device. It has the
// ResourceSlice in its annotation, or in its spec.
func overlay(name, instance string, weight int, inSpec bool, device string) string {
	slice := fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, spec: {driver: %s, devices: [{name: %s, driver: %s, attributes: {memory: 80Gi, vendor: nvidia}}]}}",
		adaptedDriver, device, adaptedDriver)
	annotation, spec := "", ""
	if inSpec {
		spec = "\n  resourceSlices: [" + slice + "]"
	} else {
		annotation = fmt.Sprintf(", annotations: {dra.kwok.x-k8s.io/resource-slices: '[%s]'}", slice)
	}
	if weight > 0 {
		spec += fmt.Sprintf("\n  weight: %d", weight)
	}
	return fmt.Sprintf("---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: %s%s}\nspec:\n  price: '1'\n  requirements: [{key: %s, operator: In, values: [%s]}]%s\n",
		name, annotation, instanceType, instance, spec)
}

// TestNodeOverlays: a NodeOverlay takes the place of templates and of the
// ConfigMap for as long as it is there.
func TestNodeOverlays(t *testing.T) {
	t.Parallel()
	h := newKarpenterHarness(t)
	const instance = "c-4x-amd64-linux"
	typed(h, "n", instance)
	typed(h, longName, instance)
	adapting(h, "--config-map", "default/"+harness.ConfigMapName)
	h.Configure("template", harness.Template("low", "other.example.com", "none", harness.GPUs(1)))
	mappings(h, mapped(2))
	mappings := []string{"nvidia-t4-0-0", "nvidia-t4-0-1"}
	pooled(h, "n", adaptedDriver, "n-device-pool", mappings...)

	definition(h, "nodeoverlays-prunes.yaml")
	h.Kubectl(overlay("price-only", instance, 100, true, "pruned"), "apply", "--validate=false", "-f", "-")
	apply(h, overlay("gpus", instance, 0, false, "h100-0"))
	for _, node := range []string{"n", longName} {
		made := pooled(h, node, adaptedDriver, node, "h100-0")
		require.Equal(t, "80Gi", *made[0].Spec.Devices[0].Attributes["memory"].StringValue)
	}
	t.Run("Weight", func(t *testing.T) { testOverlayWeight(h.On(t), instance) })
	t.Run("Precedence", func(t *testing.T) { testPrecedence(h.On(t), instance, mappings) })
	t.Run("Refused", func(t *testing.T) { testRefusedOverlay(h.On(t), instance) })

	h.Kubectl("", "delete", "crd", nodeOverlays)
	pooled(h, "n", adaptedDriver, "n-device-pool", mappings...)
	definition(h, "nodeoverlays-keeps.yaml")
	apply(h, overlay("gpus", instance, 1, true, "h200-0"))
	pooled(h, "n", adaptedDriver, "n", "h200-0")
	apply(h, overlay("gpus", instance, 1, true, "b200-0"))
	pooled(h, "n", adaptedDriver, "n", "b200-0")
	h.Kubectl("", "delete", "nodeoverlay", "gpus")
	pooled(h, "n", adaptedDriver, "n-device-pool", mappings...)
}

// testOverlayWeight: the heaviest counts, by itself. A change of the annotation is
// a change.
func testOverlayWeight(h *harness.H, instance string) {
	apply(h, overlay("heavy", instance, 10, false, "h200-0"))
	pooled(h, "n", adaptedDriver, "n", "h200-0")
	apply(h, overlay("heavy", instance, 10, false, "h200-1"))
	pooled(h, "n", adaptedDriver, "n", "h200-1")
	apply(h, overlay("heaviest", instance, 10000, false, "b200-0"))
	pooled(h, "n", adaptedDriver, "n", "b200-0")
	h.Kubectl("", "delete", "nodeoverlay", "heavy", "heaviest")
	pooled(h, "n", adaptedDriver, "n", "h100-0")
}

// testPrecedence goes down from the overlay to the template to the ConfigMap, and
// up again.
func testPrecedence(h *harness.H, instance string, mappings []string) {
	h.Configure("template", harness.Template("mine", adaptedDriver, "karpenter", "[{name: mine}]"))
	h.Configure("none", "")
	apply(h, overlay("seen", instance, 5, false, "seen")) // later than the template
	pooled(h, "n", adaptedDriver, "n", "seen")
	h.Kubectl("", "delete", "nodeoverlay", "gpus", "seen")
	pooled(h, "n", adaptedDriver, "n", "mine")
	h.Configure("template", "")
	pooled(h, "n", adaptedDriver, "n-device-pool", mappings...)
	h.Configure("template", harness.Template("mine", adaptedDriver, "karpenter", "[{name: mine}]"))
	pooled(h, "n", adaptedDriver, "n", "mine")
	apply(h, overlay("gpus", instance, 0, false, "h100-0"))
	pooled(h, "n", adaptedDriver, "n", "h100-0")
	h.Configure("template", "")
}

// testRefusedOverlay: an overlay that is refused says so, and its last good
// version stays in force.
func testRefusedOverlay(h *harness.H, instance string) {
	apply(h, strings.Replace(overlay("gpus", instance, 0, false, "h100-0"), "driver: "+adaptedDriver+", attributes", "driver: another, attributes", 1))
	told(h, "default", "gpus", "InvalidConfiguration", "another", "driver")
	apply(h, overlay("other", instance, 7, false, "other-0"))
	pooled(h, "n", adaptedDriver, "n", "other-0")
	h.Kubectl("", "delete", "nodeoverlay", "other")
	pooled(h, "n", adaptedDriver, "n", "h100-0")
}
