package autoscaled

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
