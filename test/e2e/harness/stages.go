package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// NodeReady waits until a node is ready, or is not.
func (n Nodes) NodeReady(name string, want corev1.ConditionStatus) {
	n.Helper()
	n.NodeCondition(name, corev1.NodeReady, want)
}

// NodeCondition waits for the status of a condition of a node.
func (n Nodes) NodeCondition(name string, kind corev1.NodeConditionType, want corev1.ConditionStatus) {
	n.Helper()
	n.Eventually(Patience, func() string {
		node, err := n.Client.CoreV1().Nodes().Get(n.Context(), name, metav1.GetOptions{})
		require.NoError(n, err)
		for _, condition := range node.Status.Conditions {
			if condition.Type == kind && condition.Status == want {
				return ""
			}
		}
		return fmt.Sprintf("%s of node %s is not %s", kind, name, want)
	})
}

// KwokFile is the path of a file of the kwok module.
func KwokFile(t *testing.T, name string) string {
	t.Helper()
	module, err := sidecar.ModuleDir(t.Context(), "sigs.k8s.io/kwok")
	require.NoError(t, err)
	path := filepath.Join(module, name)
	_, err = os.Stat(path)
	require.NoError(t, err)
	return path
}

// StageFiles are the Stages of a folder of the project.
func StageFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sidecar.Root(), "stages", folder, "*.yaml"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool {
		return slices.Contains([]string{"kustomization.yaml", "kwok-dra-configuration.yaml"}, filepath.Base(file))
	})
	require.NotEmpty(t, files)
	return files
}

// FastStages are kwok's own fast Stages, with the project's in place of pod-ready.
func FastStages(t *testing.T) []string {
	t.Helper()
	return append([]string{
		KwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"),
		KwokFile(t, "kustomize/stage/pod/fast/pod-complete.yaml"),
		KwokFile(t, "kustomize/stage/pod/fast/pod-delete.yaml"),
	}, StageFiles(t, "pod/fast")...)
}

// GeneralStages are the general and chaos Stages of nodes and Pods, with those of kwok that they
// do not replace.
func GeneralStages(t *testing.T) []string {
	t.Helper()
	files := GeneralKwokStages(t)
	for _, folder := range []string{"node/general", "node/chaos", "pod/general", "pod/chaos"} {
		files = append(files, StageFiles(t, folder)...)
	}
	return files
}

// GeneralKwokStages are kwok's own Stages that go with stages/node/general. As in
// kustomize/kwok-general, the Stage after node-initialize follows at once: kwok passes over
// the change by node-initialize if it has not seen its lease of the node by then.
func GeneralKwokStages(t *testing.T) []string {
	t.Helper()
	stage, err := os.ReadFile(KwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"))
	require.NoError(t, err)
	initialize := filepath.Join(t.TempDir(), "node-initialize.yaml")
	require.NoError(t, os.WriteFile(initialize, append(stage, "\n  immediateNextStage: true\n"...), 0o600))
	return []string{initialize, KwokFile(t, "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml")}
}

// ConfigureGeneral has kwok-dra follow the general Stages, and try again after retry what has failed.
func (h *H) ConfigureGeneral(retry time.Duration) {
	h.Helper()
	for _, folder := range []string{"node", "pod"} {
		document, err := os.ReadFile(filepath.Join(sidecar.Root(), "stages", folder, "general", "kwok-dra-configuration.yaml"))
		require.NoError(h, err)
		h.Configure("general-"+folder, string(document))
	}
	h.Configure("retry", fmt.Sprintf("apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: KwokDRAConfiguration\nmetadata: {name: retry}\nspec: {retryInterval: %s}\n", retry))
}

// StagedNode creates a node on which what takes half a minute by default takes
// half a second.
func (h *H) StagedNode(name, kind string, devices int) {
	h.Helper()
	node := FakeNode(name, kind)
	for _, stage := range []string{"node-dra-plugin-register", "node-dra-plugin-unregister", "node-dra-plugin-crash"} {
		node.Annotations[stage+".stage.kwok.x-k8s.io/delay"] = "500ms"
	}
	_, err := h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
	h.NodeReady(name, corev1.ConditionTrue)
	h.Published(name, Driver, devices)
}
