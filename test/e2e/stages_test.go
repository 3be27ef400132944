package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// TestStages plays the shipped Stages with kwok's own, and the configuration
// that goes with them: slices follow the DRA plugin of the node.
func TestStages(t *testing.T) {
	t.Parallel()
	files := []string{
		kwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"),
		kwokFile(t, "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"),
	}
	for _, pattern := range []string{"general/node-*.yaml", "chaos/node-*.yaml"} {
		shipped, err := filepath.Glob(filepath.Join(sidecar.Root(), "stages", "node", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, shipped)
		files = append(files, shipped...)
	}
	h := newHarness(t, cluster.Options{Config: files})
	configuration, err := os.ReadFile(filepath.Join(sidecar.Root(), "stages", "node", "general", "kwok-dra-configuration.yaml"))
	require.NoError(t, err)
	h.configure("configuration", string(configuration))
	h.configure("stages", template("stages", driver, "stages", gpus(8)))
	h.sidecar()
	for name, test := range map[string]func(*harness){
		"PluginCrash":      testPluginCrash,
		"PluginUnregister": testPluginUnregister,
		"KubeletRestart":   testKubeletRestart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

// stagedNode creates a node on which what takes half a minute by default takes
// half a second.
func (h *harness) stagedNode(name, kind string, devices int) {
	h.Helper()
	node := fakeNode(name, kind)
	for _, stage := range []string{"node-dra-plugin-register", "node-dra-plugin-unregister", "node-dra-plugin-crash"} {
		node.Annotations[stage+".stage.kwok.x-k8s.io/delay"] = "500ms"
	}
	_, err := h.client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
	h.nodeReady(name, corev1.ConditionTrue)
	h.published(name, driver, devices)
}

func testPluginCrash(h *harness) {
	h.stagedNode("crash", "stages", 8)
	h.label("crash", "node-dra-plugin-crash.stage.kwok.x-k8s.io", "true")
	h.retired("crash")
	h.label("crash", "node-dra-plugin-crash.stage.kwok.x-k8s.io", nil)
	h.published("crash", driver, 8)
}

func testPluginUnregister(h *harness) {
	h.stagedNode("unregister", "stages", 8)
	h.label("unregister", "node-dra-plugin-unregister.stage.kwok.x-k8s.io", "true")
	h.retired("unregister")
	h.label("unregister", "node-dra-plugin-unregister.stage.kwok.x-k8s.io", nil)
	h.published("unregister", driver, 8)
}

// testKubeletRestart sees new slices while the label stays: a restart is over
// by itself.
func testKubeletRestart(h *harness) {
	h.stagedNode("restart", "stages", 8)
	before := h.slicesOf("restart")[0].UID
	h.label("restart", "node-kubelet-restart.stage.kwok.x-k8s.io", "true")
	h.eventually(patience, func() string {
		pool := h.slicesOf("restart")
		if missing := completePool(pool, 8); missing != "" {
			return missing
		}
		if pool[0].UID == before {
			return "the slice is still the old one"
		}
		return ""
	})
	require.Equal(h, int64(1), generation(h.published("restart", driver, 8)))
}
