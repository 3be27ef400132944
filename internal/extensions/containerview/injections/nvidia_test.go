package injections

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestInjectionsOfNVIDIA: with NVIDIA's profiles, containers have nvidia-smi and the device nodes of
// their GPUs, of which partitions have that of the whole GPU.
func TestInjectionsOfNVIDIA(t *testing.T) {
	t.Parallel()
	for profile, test := range map[string]struct{ device, node string }{
		"nvidia-h100":        {"gpu-3", "/dev/nvidia3"},
		"nvidia-h100-mig":    {"gpu-3-mig-1g10gb-19-0", "/dev/nvidia3"},
		"nvidia-gb200-nvl72": {"gpu-2", "/dev/nvidia2"},
		"nvidia-l4":          {"gpu-0", "/dev/nvidia0"},
		"nvidia-t4":          {"gpu-0", "/dev/nvidia0"},
	} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			template, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "kustomize", "profiles", profile, "template.yaml"))
			require.NoError(t, err)
			node, pod := claimstest.NewNode("n"), claimstest.NewPod("p", "c")
			node.Labels = map[string]string{"dra.kwok.x-k8s.io/profile": profile}
			pod.Spec.Containers = []corev1.Container{naming("")}
			claim := claimstest.Allocated("c", pod)
			claimstest.Allocate(claim, claimstest.Device("gpu.nvidia.com", test.device))
			driver := &Templates{templates.New(configtest.SetOf(t, string(template)), node, templates.Slices{}, nil)}
			views, err := containerview.Of(pod, map[string]*resourcev1.ResourceClaim{"c": claim}, driver)
			require.NoError(t, err)
			require.Equal(t, []string{"NVIDIA_VISIBLE_DEVICES=void"}, views[0].Env)
			require.Equal(t, "/usr/bin/nvidia-smi", views[0].Mounts[0].ContainerPath)
			var paths []string
			for _, node := range views[0].DeviceNodes {
				paths = append(paths, node.Path)
			}
			require.Equal(t, []string{"/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", test.node}, paths)
			require.NotNil(t, views[0].Devices[0].Attributes)
		})
	}
}
