package autoscaled

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestGroups: the files of the groups are there, and Karpenter can make a node of each.
func TestGroups(t *testing.T) {
	t.Parallel()
	var files []string
	for i, argument := range GroupArguments() {
		if i%2 == 1 {
			require.FileExists(t, argument)
			files = append(files, argument)
		}
	}
	types, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "karpenter", "instance-types", "instance_types.json"))
	require.NoError(t, err)
	groups, err := os.ReadFile(files[0])
	require.NoError(t, err)
	documents := strings.Split(string(groups), "---\n")
	require.Len(t, documents, len(profiles))
	for _, document := range documents {
		node := corev1.Node{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &node))
		require.Equal(t, "conformance", node.Labels["pool"], node.Name)
		instanceType := node.Labels[corev1.LabelInstanceTypeStable]
		require.Contains(t, nodePool, instanceType)
		require.Contains(t, string(types), `"`+instanceType+`"`)
	}
}

// TestWriteDelayed: the copy of a Stage is the Stage, but later.
func TestWriteDelayed(t *testing.T) {
	t.Parallel()
	original := filepath.Join(t.TempDir(), "stage.yaml")
	require.NoError(t, os.WriteFile(original, []byte("kind: Stage\nspec:\n  next: {delete: true}\n"), 0o600))
	path, err := writeDelayed(original, 12*time.Second)
	require.NoError(t, err)
	defer func() { require.NoError(t, os.Remove(path)) }()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "kind: Stage\nspec:\n  delay: {durationMilliseconds: 12000}\n  next: {delete: true}\n", string(content))

	require.NoError(t, os.WriteFile(original, []byte("kind: Stage\n"), 0o600))
	_, err = writeDelayed(original, 0)
	require.ErrorContains(t, err, "it has no spec")
}
