package configuration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestCustomResources: templates that are objects in the cluster, from before
// their definitions come until after these have gone. Those of a file are in force
// all the time.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{})
	h.CreateNode("n0", "custom")
	const filed = "file.example.com"
	file := filepath.Join(t.TempDir(), "templates.yaml")
	require.NoError(t, os.WriteFile(file, []byte(harness.Template("file", filed, "file", harness.GPUs(2))), 0o600))
	h.CreateNode("filed", "file")
	process, err := sidecar.Start(t.Context(), h.Cluster, "--kubeconfig", h.Kubeconfig, "--enable-crds", "--config", file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Kill()) })
	before := h.Published("filed", filed, 2)

	definitions := filepath.Join(sidecar.Root(), "kustomize", "crd")
	h.Kubectl("", "apply", "-k", definitions)
	require.NoError(t, h.Cluster.AwaitDefinitions(t.Context()))
	const custom = "custom.example.com"
	h.Kubectl(harness.Template("custom", custom, "custom", harness.GPUs(8))+harness.WithSpec(harness.Template("fabric", harness.Fabric("fabric"), "custom", "[{name: port}]"), "sharedWith: {allNodes: true}"),
		"apply", "-f", "-")
	h.Published("n0", custom, 8)
	columns(h, "custom", custom+" 1 1 8 True")
	columns(h, "fabric", harness.Fabric("fabric")+" 1 1 1 True")
	owner := h.SlicesBy(harness.Fabric("fabric"))[0].OwnerReferences
	require.Len(t, owner, 1)
	require.Equal(t, "ResourcePoolTemplate fabric", owner[0].Kind+" "+owner[0].Name)

	h.CreateNode("n1", "custom")
	columns(h, "custom", custom+" 2 2 16 True")

	t.Run("Refused", func(t *testing.T) { testRefusedObject(h.On(t), custom) })
	t.Run("Policy", func(t *testing.T) { testPolicy(h.On(t)) })
	t.Run("Hints", func(t *testing.T) { testHints(h.On(t)) })

	h.Kubectl("", "delete", "rpt", "fabric")
	h.SharedPoolGone("fabric")
	h.Kubectl("", "delete", "-k", definitions)
	h.Retired("n0")
	h.Retired("n1")
	require.Equal(t, before, h.SlicesOf("filed"))
}

// testRefusedObject: a version that is refused says so in the status, and the
// last good one stays in force.
func testRefusedObject(h *harness.H, custom string) {
	h.Kubectl(harness.Template("custom", custom, "custom", "[{name: gpu_0}]"), "apply", "-f", "-")
	h.Eventually(harness.Patience, func() string {
		return harness.Missing(h.Kubectl("", "get", "rpt", "custom", "-o", `jsonpath={.status.conditions[?(@.type=="Accepted")]}`),
			`"status":"False"`, `"reason":"Invalid"`, `gpu_0`, `use \"gpu-0\"`, `"observedGeneration":2`)
	})
	h.Published("n0", custom, 8)
	h.Kubectl(harness.Template("custom", custom, "custom", harness.GPUs(4)), "apply", "-f", "-")
	h.Published("n0", custom, 4)
	columns(h, "custom", custom+" 2 2 8 True")
}

// testPolicy: what the schema cannot say of the short forms is refused at once.
func testPolicy(h *harness.H) {
	for devices, want := range map[string]string{
		"[{name: gpu, attributes: {compute-capability: '9.0'}}]":                         "must be C identifiers, with or without a domain and a slash before them: compute-capability",
		"[{name: gpu, attributes: {a: 1.5}}]":                                            "attributes must be a string, an integer, a bool, a list of these, or an object with exactly one of",
		"[{name: gpu, attributes: {a: {int: 1, string: b}}}]":                            "attributes must be",
		"[{name: gpu, capacity: {memory: {val: 80Gi}}}]":                                 "capacities must be a quantity, or an object with the field value",
		"[{name: gpu, counters: {m: 1}, partitions: [{name: p, attributes: {a-b: x}}]}]": "C identifiers",
		"[]":                      "spec.devices: Invalid value: 0: spec.devices in body should have at least 1 items",
		"[{name: gpu, count: 0}]": "should be greater than or equal to 1",
	} {
		_, err := h.Cluster.KubectlInput(h.Context(), strings.NewReader(harness.Template("bad", "bad.example.com", "none", devices)), "apply", "-f", "-")
		require.ErrorContains(h, err, want, devices)
	}
	good := "[{name: gpu, attributes: {a: x, b: 1, c: true, d: [x, z], e: {version: 1.2.3}, f: {ints: [1]}, gpu.example.com/g: x}, capacity: {m: 80Gi, k: 8, l: {value: 8}}}]"
	h.Kubectl(harness.Template("good", "good.example.com", "none", good), "apply", "-f", "-")
	columns(h, "good", "good.example.com 0 0 0 False")
}

// testHints: what is a string only because of its quotes is accepted, and kubectl prints a warning that says so.
func testHints(h *harness.H) {
	warning := func(attributes string) string {
		h.Helper()
		command := h.Cluster.KubectlCommand(h.Context(), "apply", "-f", "-")
		command.Stdin = strings.NewReader(harness.Template("hints", "hints.example.com", "none", "[{name: gpu, attributes: "+attributes+"}]"))
		var printed strings.Builder
		command.Stderr = &printed
		require.NoError(h, command.Run(), printed.String())
		return printed.String()
	}
	require.Empty(h, warning(`{a: x, b: 1, c: {string: "8086"}, d: "0x74a1", e: [x, y]}`))
	for name, value := range map[string]string{"a": `"1"`, "b": `"true"`, "c": `"{{ .Index }}"`, "d": `["1", "2"]`} {
		require.Contains(h, warning("{"+name+": "+value+"}"), "Warning: Validation failed for ValidatingAdmissionPolicy 'resourcepooltemplates-hints.dra.kwok.x-k8s.io' with binding "+
			"'resourcepooltemplates-hints.dra.kwok.x-k8s.io': the template is accepted, but its quotes make these attributes strings: "+name+"; a selector", value)
	}
	columns(h, "hints", "hints.example.com 0 0 0 False")
}

// columns waits until kubectl shows these columns of a template, all but name
// and age.
func columns(h *harness.H, name, want string) {
	h.Helper()
	h.Eventually(harness.Patience, func() string {
		fields := strings.Fields(h.Kubectl("", "get", "rpt", name, "--no-headers"))
		if got := strings.Join(fields[1:len(fields)-1], " "); got != want {
			return fmt.Sprintf("kubectl get rpt %s shows %q, want %q", name, got, want)
		}
		return ""
	})
}
