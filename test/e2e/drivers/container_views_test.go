package drivers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// sees: what the CDI specs of the example's driver have a runtime inject into the containers of a Pod
// is what the profile gpu-example says.
func (s *story) sees(pod string) {
	s.Helper()
	if s.node != "gpu" {
		return
	}
	live := s.views(pod, "--plugins-dir", s.plugins)
	require.NotEmpty(s, live[0].Env)
	require.NotEmpty(s, live[0].Devices)
	require.Equal(s, live, s.views(pod, "-f", anyNode(s.T, "gpu-example")))
}

// views are those of a Pod's containers.
func (s *story) views(pod string, flags ...string) []containerview.Container {
	s.Helper()
	programs, err := sidecar.Programs()
	require.NoError(s, err)
	arguments := append([]string{"pod", pod, "-n", s.node, "--kubeconfig", s.Cluster.Kubeconfig(), "-o", "json"}, flags...)
	out, err := exec.CommandContext(s.Context(), filepath.Join(programs, "kwok-dractl"), arguments...).Output()
	require.NoError(s, err)
	var view struct{ Containers []containerview.Container }
	require.NoError(s, json.Unmarshal(out, &view))
	return view.Containers
}

// anyNode is a file with the template of a profile, for any node.
func anyNode(t *testing.T, profile string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "profiles", profile, "template.yaml"))
	require.NoError(t, err)
	var template v1alpha1.ResourcePoolTemplate
	require.NoError(t, yaml.UnmarshalStrict(content, &template))
	template.Spec.NodeSelector = nil
	// The status is for kwok-dra to write.
	changed, err := yaml.Marshal(map[string]any{"apiVersion": template.APIVersion, "kind": template.Kind, "metadata": map[string]any{"name": template.Name}, "spec": template.Spec})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "template.yaml")
	require.NoError(t, os.WriteFile(file, changed, 0o600))
	return file
}
