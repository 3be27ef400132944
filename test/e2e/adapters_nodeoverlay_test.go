package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	h.typed("n", instance)
	h.typed(longName, instance)
	h.adapting("--config-map", "default/"+configMapName)
	h.configure("template", template("low", "other.example.com", "none", gpus(1)))
	h.mappings(mapped(2))
	mappings := []string{"nvidia-t4-0-0", "nvidia-t4-0-1"}
	h.pooled("n", adaptedDriver, "n-device-pool", mappings...)

	h.definition("nodeoverlays-prunes.yaml", nodeOverlays)
	h.kubectl(overlay("price-only", instance, 100, true, "pruned"), "apply", "--validate=false", "-f", "-")
	h.apply(overlay("gpus", instance, 0, false, "h100-0"))
	for _, node := range []string{"n", longName} {
		made := h.pooled(node, adaptedDriver, node, "h100-0")
		require.Equal(t, "80Gi", *made[0].Spec.Devices[0].Attributes["memory"].StringValue)
	}
	t.Run("Weight", func(t *testing.T) { testOverlayWeight(h.on(t), instance) })
	t.Run("Precedence", func(t *testing.T) { testPrecedence(h.on(t), instance, mappings) })
	t.Run("Refused", func(t *testing.T) { testRefusedOverlay(h.on(t), instance) })

	h.kubectl("", "delete", "crd", nodeOverlays)
	h.pooled("n", adaptedDriver, "n-device-pool", mappings...)
	h.definition("nodeoverlays-keeps.yaml", nodeOverlays)
	h.apply(overlay("gpus", instance, 1, true, "h200-0"))
	h.pooled("n", adaptedDriver, "n", "h200-0")
	h.apply(overlay("gpus", instance, 1, true, "b200-0"))
	h.pooled("n", adaptedDriver, "n", "b200-0")
	h.kubectl("", "delete", "nodeoverlay", "gpus")
	h.pooled("n", adaptedDriver, "n-device-pool", mappings...)
}

// testOverlayWeight: the heaviest counts, by itself. A change of the annotation is
// a change.
func testOverlayWeight(h *harness, instance string) {
	h.apply(overlay("heavy", instance, 10, false, "h200-0"))
	h.pooled("n", adaptedDriver, "n", "h200-0")
	h.apply(overlay("heavy", instance, 10, false, "h200-1"))
	h.pooled("n", adaptedDriver, "n", "h200-1")
	h.apply(overlay("heaviest", instance, 10000, false, "b200-0"))
	h.pooled("n", adaptedDriver, "n", "b200-0")
	h.kubectl("", "delete", "nodeoverlay", "heavy", "heaviest")
	h.pooled("n", adaptedDriver, "n", "h100-0")
}

// testPrecedence goes down from the overlay to the template to the ConfigMap, and
// up again.
func testPrecedence(h *harness, instance string, mappings []string) {
	h.configure("template", template("mine", adaptedDriver, "karpenter", "[{name: mine}]"))
	h.configure("none", "")
	h.apply(overlay("seen", instance, 5, false, "seen")) // later than the template
	h.pooled("n", adaptedDriver, "n", "seen")
	h.kubectl("", "delete", "nodeoverlay", "gpus", "seen")
	h.pooled("n", adaptedDriver, "n", "mine")
	h.configure("template", "")
	h.pooled("n", adaptedDriver, "n-device-pool", mappings...)
	h.configure("template", template("mine", adaptedDriver, "karpenter", "[{name: mine}]"))
	h.pooled("n", adaptedDriver, "n", "mine")
	h.apply(overlay("gpus", instance, 0, false, "h100-0"))
	h.pooled("n", adaptedDriver, "n", "h100-0")
	h.configure("template", "")
}

// testRefusedOverlay: an overlay that is refused says so, and its last good
// version stays in force.
func testRefusedOverlay(h *harness, instance string) {
	h.apply(strings.Replace(overlay("gpus", instance, 0, false, "h100-0"), "driver: "+adaptedDriver+", attributes", "driver: another, attributes", 1))
	h.told("default", "gpus", "InvalidConfiguration", "another", "driver")
	h.apply(overlay("other", instance, 7, false, "other-0"))
	h.pooled("n", adaptedDriver, "n", "other-0")
	h.kubectl("", "delete", "nodeoverlay", "other")
	h.pooled("n", adaptedDriver, "n", "h100-0")
}
