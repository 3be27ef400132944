package adapters_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/karpenter/adapters"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// karpenters is a node as Karpenter's KWOK provider makes them.
const karpenters = `
metadata:
  name: kwok-gpu-nodepool-of-some-length-8xk2p-blissful-haslettxxxxxx-7-0123456789-4294967295
  uid: 5a4b8a3e-8f1c-4a39-a1ef-2ad2d5d3e1f0
  labels:
    node.kubernetes.io/instance-type: g5.48xlarge
    karpenter.sh/nodepool: default
    kwok.x-k8s.io/node: fake
    cpus: "9"
    gpus: "8"
  annotations: {kwok.x-k8s.io/node: fake}
`

// published are the slices of the node from a document in testdata.
func published(t *testing.T, name string, adapt func(text string) (*config.Adapted, error)) []*resourcev1.ResourceSlice {
	t.Helper()
	text, err := os.ReadFile("testdata/accepted/" + name + ".input.yaml")
	require.NoError(t, err)
	adapted, err := adapt(string(text))
	require.NoError(t, err)
	node := &corev1.Node{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(karpenters), node))
	var templates []*devices.Template
	for i := range adapted.Templates {
		template, errs := devices.Compile(&adapted.Templates[i])
		require.Empty(t, errs)
		templates = append(templates, template)
	}
	var made []*resourcev1.ResourceSlice
	for _, chosen := range devices.SelectForNode(templates, node).ByDriver {
		pools, refusals, err := devices.PoolsForNode(chosen, lifecycle.NewObject(node), nil)
		require.NoError(t, err)
		require.Empty(t, refusals)
		fitted, err := features.Fit(t.Context(), resourceslice.NewProber(fake.NewClientset()), pools)
		require.NoError(t, err)
		needs, err := plan.New("", node, &fitted, nil)
		require.NoError(t, err)
		made = append(made, needs.Create...)
	}
	return made
}

// TestSlices: what a Publisher would write for a node with the longest name. Who
// selects slices by the peers' labels finds them, but by the name of the node,
// which is too long for a label.
func TestSlices(t *testing.T) {
	t.Parallel()
	object := func(text string) *unstructured.Unstructured {
		source := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &source.Object))
		return source
	}
	for name, test := range map[string]struct {
		adapt   func(text string) (*config.Adapted, error)
		devices [][]string
		labels  map[string]string
	}{
		"configmap-dotted": {
			adapters.ConfigMap,
			[][]string{{"nvidia-h100-0", "nvidia-h100-1", "nvidia-h100-2", "nvidia-h100-3", "nvidia-h100-4", "nvidia-h100-5", "nvidia-h100-6", "nvidia-h100-7"}},
			map[string]string{"kwok.x-k8s.io/managed-by": "dra-kwok-driver"},
		},
		"nodeoverlay-spec": {
			func(text string) (*config.Adapted, error) { return adapters.NodeOverlay(object(text)) },
			[][]string{{"nvidia-h100-0", "nvidia-h100-1"}, {"nvidia-h100-2"}},
			nil,
		},
		"draconfig-two": {
			func(text string) (*config.Adapted, error) { return adapters.DRAConfig(object(text)) },
			[][]string{{"a10-0"}, {"h100-0", "h100-1"}, {"h100-2"}},
			map[string]string{"test.karpenter.sh/managed-by": "dra-kwok-driver", "test.karpenter.sh/driver": "gpu.nvidia.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var devices [][]string
			for _, slice := range published(t, name, test.adapt) {
				var names []string
				for _, device := range slice.Spec.Devices {
					names = append(names, device.Name)
				}
				devices = append(devices, names)
				require.Empty(t, validation.IsDNS1123Subdomain(slice.Name))
				require.EqualValues(t, len(test.devices), slice.Spec.Pool.ResourceSliceCount)
				require.EqualValues(t, 1, slice.Spec.Pool.Generation)
				require.Subset(t, slice.Labels, test.labels)
				requireValidLabels(t, slice.Labels)
				if pool := slice.Labels["test.karpenter.sh/pool"]; pool != "" {
					require.Equal(t, strings.Split(names[0], "-")[0]+"-pool", pool)
				}
			}
			require.ElementsMatch(t, test.devices, devices)
		})
	}
}

func requireValidLabels(t *testing.T, labels map[string]string) {
	t.Helper()
	for key, value := range labels {
		require.Empty(t, validation.IsValidLabelValue(value), key)
		require.False(t, strings.HasSuffix(key, "/node"), key)
	}
}
