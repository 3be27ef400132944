// Package stages proves that the project's Stages have nodes, Pods and claims change
// as a recorded kubelet and driver did.
package stages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestStages plays the shipped Stages with kwok's own, and the configuration
// that goes with them: slices follow the DRA plugin of the node.
func TestStages(t *testing.T) {
	t.Parallel()
	files := harness.GeneralKwokStages(t)
	for _, pattern := range []string{"general/node-*.yaml", "chaos/node-*.yaml"} {
		shipped, err := filepath.Glob(filepath.Join(sidecar.Root(), "stages", "node", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, shipped)
		files = append(files, shipped...)
	}
	h := harness.New(t, cluster.Options{Config: files})
	configuration, err := os.ReadFile(filepath.Join(sidecar.Root(), "stages", "node", "general", "kwok-dra-configuration.yaml"))
	require.NoError(t, err)
	h.Configure("configuration", string(configuration))
	h.Configure("stages", harness.Template("stages", harness.Driver, "stages", harness.GPUs(8)))
	h.Sidecar()
	for name, test := range map[string]func(*harness.H){
		"PluginCrash":      testPluginCrash,
		"PluginUnregister": testPluginUnregister,
		"KubeletRestart":   testKubeletRestart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.On(t))
		})
	}
}

func testPluginCrash(h *harness.H) {
	h.StagedNode("crash", "stages", 8)
	h.Label("crash", "node-dra-plugin-crash.stage.kwok.x-k8s.io", "true")
	h.Retired("crash")
	h.Label("crash", "node-dra-plugin-crash.stage.kwok.x-k8s.io", nil)
	h.Published("crash", harness.Driver, 8)
}

func testPluginUnregister(h *harness.H) {
	h.StagedNode("unregister", "stages", 8)
	h.Label("unregister", "node-dra-plugin-unregister.stage.kwok.x-k8s.io", "true")
	h.Retired("unregister")
	h.Label("unregister", "node-dra-plugin-unregister.stage.kwok.x-k8s.io", nil)
	h.Published("unregister", harness.Driver, 8)
}

// testKubeletRestart sees new slices while the label stays: a restart is over
// by itself.
func testKubeletRestart(h *harness.H) {
	h.StagedNode("restart", "stages", 8)
	before := h.SlicesOf("restart")[0].UID
	h.Label("restart", "node-kubelet-restart.stage.kwok.x-k8s.io", "true")
	h.Eventually(harness.Patience, func() string {
		pool := h.SlicesOf("restart")
		if missing := harness.CompletePool(pool, 8); missing != "" {
			return missing
		}
		if pool[0].UID == before {
			return "the slice is still the old one"
		}
		return ""
	})
	require.Equal(h, int64(1), harness.Generation(h.Published("restart", harness.Driver, 8)))
}
