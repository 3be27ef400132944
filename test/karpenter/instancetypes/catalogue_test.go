package instancetypes

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// inCatalogue are the instance types that the templates of the catalogue name.
func inCatalogue(t *testing.T) map[string]bool {
	t.Helper()
	types := map[string]bool{}
	for _, path := range catalogue(t) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var template v1alpha1.ResourcePoolTemplate
			require.NoError(t, yaml.Unmarshal([]byte(document), &template), path)
			if template.Spec.NodeSelector == nil {
				continue // a chart's, which go by its Pods
			}
			for _, name := range namedBy(template.Spec.NodeSelector) {
				types[name] = true
			}
		}
	}
	return types
}

func namedBy(selector *corev1.NodeSelector) []string {
	var types []string
	for _, term := range selector.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if expression.Key == corev1.LabelInstanceTypeStable {
				types = append(types, expression.Values...)
			}
		}
	}
	return types
}

// TestCatalogue: the file for Karpenter has the types of the catalogue and no
// others, and each has devices.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	want := inCatalogue(t)
	for name := range want {
		require.Contains(t, shipped, name)
	}
	d := devicesOfFiles(t, catalogue(t)...)
	for name, it := range shipped {
		require.Contains(t, want, name)
		made, err := d.Of(t.Context(), nodePool("p", nil), it)
		require.NoError(t, err)
		require.NotEmpty(t, made, name)
		require.Len(t, it.Offerings.Available(), 2, name)
		allocatable := it.Allocatable()
		require.Positive(t, allocatable.Cpu().Sign(), name)
		require.Positive(t, allocatable.Memory().Sign(), name)
	}
}

// TestProfiles: profiles for which no cloud has a type, or that are not its
// default, come with the NodePool's label.
func TestProfiles(t *testing.T) {
	t.Parallel()
	d := devicesOfFiles(t, catalogue(t)...)
	for profile, want := range map[string]struct {
		driver  string
		devices int
	}{
		"":                {"gpu.nvidia.com", 8},
		"nvidia-h100-mig": {"gpu.nvidia.com", 8 * 26},
		"gpu-example":     {"gpu.example.com", 8},
		"sriov-nic":       {"sriovnetwork.k8snetworkplumbingwg.io", 16},
	} {
		labels := map[string]string{"dra.kwok.x-k8s.io/profile": profile}
		made, err := d.Of(t.Context(), nodePool("p", labels), shipped["p5.48xlarge"])
		require.NoError(t, err)
		require.Len(t, names(made)[want.driver], want.devices, profile)
	}
}
