package adapters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const draConfigs = "draconfigs.test.karpenter.sh"

// draConfig is a DRAConfig for nodes of an instance type. Each pool is its name
// and the devices of its ResourceSlices: "a: x y; z" has two.
func draConfig(name, driver, instance string, pools ...string) string {
	text := fmt.Sprintf("---\napiVersion: test.karpenter.sh/v1alpha1\nkind: DRAConfig\nmetadata: {name: %s}\nspec:\n  driver: %s\n  pools:\n", name, driver)
	for _, pool := range pools {
		poolName, slices, _ := strings.Cut(pool, ":")
		text += fmt.Sprintf("  - name: %s\n    nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: [%s]}]}]\n    resourceSlices:\n",
			poolName, instanceType, instance)
		for devices := range strings.SplitSeq(slices, ";") {
			text += "    - devices:\n"
			for device := range strings.FieldsSeq(devices) {
				text += "      - {name: " + device + ", attributes: {model: {string: h100}}}\n"
			}
		}
	}
	return text
}

// TestDRAConfigs has Karpenter's own configuration of fake devices, from before
// its definition comes until after it has gone.
func TestDRAConfigs(t *testing.T) {
	t.Parallel()
	h := newKarpenterHarness(t)
	adapting(h)
	typed(h, "n0", "g5")
	typed(h, longName, "g5")
	typed(h, "m0", "m5")
	definition(h, "draconfigs.yaml")

	const gpu = "gpu.nvidia.com"
	apply(h, draConfig("gpus", gpu, "g5", "h100-pool: gpu-0 gpu-1; gpu-2", "a10-pool: a10-0"))
	for _, node := range []string{"n0", longName} {
		made := pooled(h, node, gpu, gpu+"/"+node, "gpu-0", "gpu-1", "gpu-2", "a10-0")
		require.Len(t, made, 3, "a slice for each entry")
		require.Equal(t, node == "n0", made[0].Labels["test.karpenter.sh/node"] == node)
		requireLabelled(t, made, map[string]string{"gpu-0": "h100-pool", "gpu-2": "h100-pool", "a10-0": "a10-pool"})
	}
	require.Empty(t, h.Pool("m0", gpu))
	shows(h, "gpus", 2, 6, "True", "True", "published on 2 nodes")

	t.Run("Refused", func(t *testing.T) { testRefusedDRAConfig(h.On(t), gpu) })
	t.Run("Clash", func(t *testing.T) { testClashingDRAConfigs(h.On(t)) })
	t.Run("Status", func(t *testing.T) { testStatusOfSomeoneElse(h.On(t)) })

	typed(h, "n1", "g5")
	shows(h, "gpus", 3, 9, "True", "True")
	h.DeleteNode("n1")
	shows(h, "gpus", 2, 6, "True", "True")
	h.Kubectl("", "delete", "crd", draConfigs)
	h.Retired("n0")
	h.Retired(longName)
	definition(h, "draconfigs.yaml")
	apply(h, draConfig("gpus", gpu, "g5", "h100-pool: gpu-0"))
	pooled(h, "n0", gpu, gpu+"/n0", "gpu-0")
}

// requireLabelled wants slices to have the label of the pool that their devices are
// of.
func requireLabelled(t *testing.T, made []resourcev1.ResourceSlice, poolOf map[string]string) {
	t.Helper()
	for _, slice := range made {
		require.Equal(t, "dra-kwok-driver", slice.Labels["test.karpenter.sh/managed-by"])
		require.Equal(t, slice.Spec.Driver, slice.Labels["test.karpenter.sh/driver"])
		if want := poolOf[slice.Spec.Devices[0].Name]; want != "" {
			require.Equal(t, want, slice.Labels["test.karpenter.sh/pool"])
		}
	}
}

// testRefusedDRAConfig: one that is invalid leaves its last good version in force,
// and others as they are.
func testRefusedDRAConfig(h *harness.H, gpu string) {
	bad := strings.Replace(draConfig("gpus", gpu, "g5", "h100-pool: gpu-0"), "model:", "compute-capability:", 1)
	apply(h, bad+draConfig("nics", "nic.example.com", "g5", "p: nic-0"))
	shows(h, "gpus", 2, 6, "False", "False", "spec.pools[0].resourceSlices[0].devices[0].attributes[compute-capability]", "compute_capability")
	told(h, "default", "gpus", "InvalidConfiguration", "compute-capability")
	pooled(h, "n0", "nic.example.com", "nic.example.com/n0", "nic-0")
	pooled(h, "n0", gpu, gpu+"/n0", "gpu-0", "gpu-1", "gpu-2", "a10-0")
	apply(h, strings.Replace(bad, "name: gpus", "name: never-good", 1))
	shows(h, "never-good", 0, 0, "False", "False", "no version has been accepted", "compute-capability")
	h.Kubectl("", "delete", "draconfig", "never-good", "nics")
	apply(h, draConfig("gpus", gpu, "g5", "h100-pool: gpu-0 gpu-1; gpu-2", "a10-pool: a10-0"))
	shows(h, "gpus", 2, 6, "True", "True")
}

// testClashingDRAConfigs: of two that have a device of one name on a node the
// older stands, and one that clashes with itself spoils nothing but itself. The
// status names devices and pools.
func testClashingDRAConfigs(h *harness.H) {
	const fpga = "fpga.example.com"
	const pool = fpga + "/m0"
	apply(h, draConfig("first", fpga, "m5", "small: fpga-0"))
	pooled(h, "m0", fpga, pool, "fpga-0")
	apply(h, draConfig("itself", fpga, "m5", "one: f-0 f-1", "two: f-1 f-2 f-0"))
	shows(h, "itself", 1, 0, "False", "True", "pool one of DRAConfig itself and pool two of DRAConfig itself both have the devices f-1, f-0",
		"DRAConfig itself is left out on this node")
	harness.Wait(h.Context(), 2*time.Second) // DRAConfigs know their ages by the second
	apply(h, draConfig("another", fpga, "m5", "big: fpga-1 fpga-0"))
	shows(h, "another", 1, 0, "False", "True", "pool big of DRAConfig another and pool small of DRAConfig first both have the device fpga-0 in pool "+pool)
	shows(h, "first", 1, 1, "True", "True")
	told(h, "default", "m0", "PublishFailed", "DRAConfig itself is left out", "DRAConfig another is left out")
	pooled(h, "m0", fpga, pool, "fpga-0")

	apply(h, draConfig("first", fpga, "m5", "small: fpga-0 fpga-7"))
	pooled(h, "m0", fpga, pool, "fpga-0", "fpga-7")
	typed(h, "m1", "m5")
	pooled(h, "m1", fpga, fpga+"/m1", "fpga-0", "fpga-7")
	h.Kubectl("", "delete", "draconfig", "first")
	pooled(h, "m0", fpga, pool, "fpga-0", "fpga-1")
	shows(h, "another", 2, 2, "True", "True")
	h.Kubectl("", "delete", "draconfig", "another", "itself")
	h.DeleteNode("m1")
}

// testStatusOfSomeoneElse: who writes a field of the status keeps it, and is not answered. The others go on.
func testStatusOfSomeoneElse(h *harness.H) {
	h.Kubectl("", "patch", "draconfig", "gpus", "--subresource=status", "--type=merge", "-p", `{"status": {"nodeCount": 99}}`)
	wrote := len(h.WritesTo("draconfigs", "gpus"))
	typed(h, "n2", "g5")
	pooled(h, "n2", "gpu.nvidia.com", "gpu.nvidia.com/n2", "gpu-0", "gpu-1", "gpu-2", "a10-0")
	apply(h, draConfig("witness", "witness.example.com", "g5", "p: w-0"))
	shows(h, "witness", 3, 3, "True", "True")
	shows(h, "gpus", 99, 9, "True", "True", "published on 3 nodes")
	require.LessOrEqual(h, len(h.WritesTo("draconfigs", "gpus")), wrote+3, "one for each slice of the node")

	h.Kubectl("", "patch", "draconfig", "gpus", "--subresource=status", "--type=merge", "-p", `{"status": {"nodeCount": null}}`)
	shows(h, "gpus", 3, 9, "True", metav1.ConditionTrue)
	h.Kubectl("", "delete", "draconfig", "witness")
	h.DeleteNode("n2")
}
