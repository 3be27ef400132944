package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// TestCustomResources: templates that are objects in the cluster, from before
// their definitions come until after these have gone.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cluster.Options{})
	h.createNode("n0", "custom")
	process, err := sidecar.Start(t.Context(), h.cluster, "--kubeconfig", h.kubeconfig, "--enable-crds")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Kill()) })

	definitions := filepath.Join(sidecar.Root(), "kustomize", "crd")
	h.kubectl("", "apply", "-k", definitions)
	h.kubectl("", "wait", "--for=condition=Established", "--timeout=60s", "crd/resourcepooltemplates.dra.kwok.x-k8s.io")
	const custom = "custom.example.com"
	h.kubectl(template("custom", custom, "custom", gpus(8))+withSpec(template("fabric", fabric("fabric"), "custom", "[{name: port}]"), "sharedWith: {allNodes: true}"),
		"apply", "-f", "-")
	h.published("n0", custom, 8)
	h.columns("custom", custom+" 1 1 8 True")
	h.columns("fabric", fabric("fabric")+" 1 1 1 True")
	owner := h.slicesBy(fabric("fabric"))[0].OwnerReferences
	require.Len(t, owner, 1)
	require.Equal(t, "ResourcePoolTemplate fabric", owner[0].Kind+" "+owner[0].Name)

	h.createNode("n1", "custom")
	h.columns("custom", custom+" 2 2 16 True")

	t.Run("Refused", func(t *testing.T) { testRefusedObject(h.on(t), custom) })
	t.Run("Policy", func(t *testing.T) { testPolicy(h.on(t)) })

	h.kubectl("", "delete", "rpt", "fabric")
	h.sharedPoolGone("fabric")
	h.kubectl("", "delete", "-k", definitions)
	h.retired("n0")
	h.retired("n1")
}

// testRefusedObject: a version that is refused says so in the status, and the
// last good one stays in force.
func testRefusedObject(h *harness, custom string) {
	h.kubectl(template("custom", custom, "custom", "[{name: gpu_0}]"), "apply", "-f", "-")
	h.eventually(patience, func() string {
		return missing(h.kubectl("", "get", "rpt", "custom", "-o", `jsonpath={.status.conditions[?(@.type=="Accepted")]}`),
			`"status":"False"`, `"reason":"Invalid"`, `gpu_0`, `use \"gpu-0\"`, `"observedGeneration":2`)
	})
	h.published("n0", custom, 8)
	h.kubectl(template("custom", custom, "custom", gpus(4)), "apply", "-f", "-")
	h.published("n0", custom, 4)
	h.columns("custom", custom+" 2 2 8 True")
}

// testPolicy: what the schema cannot say of the short forms is refused at once.
func testPolicy(h *harness) {
	for devices, want := range map[string]string{
		"[{name: gpu, attributes: {compute-capability: '9.0'}}]":                         "must be C identifiers, with or without a domain and a slash before them: compute-capability",
		"[{name: gpu, attributes: {a: 1.5}}]":                                            "attributes must be a string, an integer, a bool, a list of these, or an object with exactly one of",
		"[{name: gpu, attributes: {a: {int: 1, string: b}}}]":                            "attributes must be",
		"[{name: gpu, capacity: {memory: {val: 80Gi}}}]":                                 "capacities must be a quantity, or an object with the field value",
		"[{name: gpu, counters: {m: 1}, partitions: [{name: p, attributes: {a-b: x}}]}]": "C identifiers",
		"[]":                      "spec.devices: Invalid value: 0: spec.devices in body should have at least 1 items",
		"[{name: gpu, count: 0}]": "should be greater than or equal to 1",
	} {
		_, err := h.cluster.KubectlInput(h.Context(), strings.NewReader(template("bad", "bad.example.com", "none", devices)), "apply", "-f", "-")
		require.ErrorContains(h, err, want, devices)
	}
	good := "[{name: gpu, attributes: {a: x, b: 1, c: true, d: [x, z], e: {version: 1.2.3}, f: {ints: [1]}, gpu.example.com/g: x}, capacity: {m: 80Gi, k: 8, l: {value: 8}}}]"
	h.kubectl(template("good", "good.example.com", "none", good), "apply", "-f", "-")
	h.columns("good", "good.example.com 0 0 0 False")
}

// kubectl runs kubectl with an input, and returns what it prints.
func (h *harness) kubectl(input string, arguments ...string) string {
	h.Helper()
	output, err := h.cluster.KubectlInput(h.Context(), strings.NewReader(input), arguments...)
	require.NoError(h, err)
	return string(output)
}

// columns waits until kubectl shows these columns of a template, all but name
// and age.
func (h *harness) columns(name, want string) {
	h.Helper()
	h.eventually(patience, func() string {
		fields := strings.Fields(h.kubectl("", "get", "rpt", name, "--no-headers"))
		if got := strings.Join(fields[1:len(fields)-1], " "); got != want {
			return fmt.Sprintf("kubectl get rpt %s shows %q, want %q", name, got, want)
		}
		return ""
	})
}

// missing says which of the words a text lacks.
func missing(text string, words ...string) string {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Sprintf("%s has no %s", text, word)
		}
	}
	return ""
}
