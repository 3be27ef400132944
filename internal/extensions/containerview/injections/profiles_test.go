package injections

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/parameters" // it checks opaque parameters
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

func readProfile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "kustomize", "profiles", name, "template.yaml"))
	require.NoError(t, err)
	return string(text)
}

// nodeSelector is in templates of profiles, before the devices.
var nodeSelector = regexp.MustCompile(`(?ms)^  nodeSelector:\n.*?^  devices:`)

// profileTests are claims of devices of profiles.
var profileTests = map[string]struct {
	profile string
	result  resourcev1.DeviceRequestAllocationResult
	// parameters are those of the claim, if there are any.
	parameters string
	env        []string
	// nodes and mounts are the paths of device nodes and mounts in a container.
	nodes, mounts []string
	// refused is why the driver refuses the parameters, if it does.
	refused string
}{
	"net": {
		profile:    "net-example",
		result:     consuming(claimstest.Device("net.example.com", "nic-1"), map[resourcev1.QualifiedName]string{"ingressBandwidth": "100M", "egressBandwidth": "9765625Ki"}),
		parameters: `{"apiVersion": "net.resource.example.com/v1alpha1", "kind": "NetConfig", "bwBurst": {"ingressBurst": 2000000}}`,
		env: []string{
			"KUBERNETES_NODE_NAME=n", "DRA_RESOURCE_DRIVER_NAME=net.example.com", "NET_DEVICE_NIC_1_RESOURCE_CLAIM=uid-of-c", "DRA_ADMIN_ACCESS=false",
			"NET_DEVICE_1_INGRESS_BURST=2000000", "NET_DEVICE_1_INGRESS_RATE=100000000", "NET_DEVICE_1_EGRESS_RATE=10000000000",
		},
	},
	"net, bad": {
		profile: "net-example", result: claimstest.Device("net.example.com", "nic-1"),
		parameters: `{"apiVersion": "net.resource.example.com/v1alpha1", "kind": "NetConfig", "bwBurst": {"ingressBurst": -1}}`,
		refused:    "bwBurst.ingressBurst: Invalid value: -1: should be greater than or equal to 0",
	},
	"cpu": {
		profile: "cpu-example",
		result:  consuming(claimstest.Device("cpu.example.com", "numa-0"), map[resourcev1.QualifiedName]string{"cpu.example.com/cpu": "3"}),
		env: []string{
			"KUBERNETES_NODE_NAME=n", "DRA_RESOURCE_DRIVER_NAME=cpu.example.com", "CPU_DEVICE_NUMA_0_RESOURCE_CLAIM=uid-of-c", "DRA_ADMIN_ACCESS=false",
			"CPU_DEVICE_0=numa-0", "CPU_DEVICE_0_CONSUMED_CPU=3",
		},
	},
	"GPU": {
		profile: "nvidia-h100", result: claimstest.Device("gpu.nvidia.com", "gpu-3"),
		env:    []string{"NVIDIA_VISIBLE_DEVICES=void"},
		nodes:  []string{"/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia3"},
		mounts: []string{"/usr/bin/nvidia-smi"},
	},
	"GPU with MPS": {
		profile: "nvidia-h100", result: claimstest.Device("gpu.nvidia.com", "gpu-0"),
		parameters: `{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 50, "defaultPinnedDeviceMemoryLimit": "10Gi"}}}`,
		env:        []string{"NVIDIA_VISIBLE_DEVICES=void", "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"},
		nodes:      []string{"/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0"},
		mounts:     []string{"/usr/bin/nvidia-smi"},
	},
	"GPU, unknown strategy": {
		profile: "nvidia-t4", result: claimstest.Device("gpu.nvidia.com", "gpu-0"),
		parameters: `{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {"strategy": "None"}}`,
		refused:    `sharing.strategy: Unsupported value: "None": supported values: "TimeSlicing", "MPS"`,
	},
	"GPU, settings of another strategy": {
		profile: "nvidia-l4", result: claimstest.Device("gpu.nvidia.com", "gpu-0"),
		parameters: `{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "mpsConfig": {}}}`,
		refused:    "sharing: Invalid value: must not validate the schema (not)",
	},
	"partition": {
		profile: "nvidia-h100-mig", result: claimstest.Device("gpu.nvidia.com", "gpu-2-mig-1g10gb-19-0"),
		parameters: `{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "MigDeviceConfig", "sharing": {"strategy": "TimeSlicing"}}`,
		env:        []string{"NVIDIA_VISIBLE_DEVICES=void"},
		nodes:      []string{"/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia2"},
		mounts:     []string{"/usr/bin/nvidia-smi"},
	},
	"channel": {
		profile: "nvidia-gb200-nvl72", result: claimstest.Device("compute-domain.nvidia.com", "channel-0"),
		parameters: `{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": "uid", "allocationMode": "Single"}`,
		nodes:      []string{"/dev/nvidia-caps-imex-channels/channel0"},
	},
	"channel of no domain": {
		profile: "nvidia-gb200-nvl72", result: claimstest.Device("compute-domain.nvidia.com", "channel-0"),
		parameters: `{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig"}`,
		refused:    "domainID: Required value",
	},
	"daemon": {
		profile: "nvidia-gb200-nvl72", result: claimstest.Device("compute-domain.nvidia.com", "daemon-0"),
		parameters: `{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainDaemonConfig", "domainID": "uid"}`,
		env:        []string{"CLIQUE_ID=", "COMPUTE_DOMAIN_UUID=uid"},
		mounts:     []string{"/imexd"},
	},
}

// TestProfiles: what the drivers of profiles make of parameters, and what containers see then.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for name, test := range profileTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			claimstest.Allocate(claim, test.result)
			if test.parameters != "" {
				claim.Status.Allocation.Devices.Config = []resourcev1.DeviceAllocationConfiguration{
					opaque(test.result.Driver, resourcev1.AllocationConfigSourceClaim, test.parameters),
				}
			}
			documents := nodeSelector.ReplaceAllString(readProfile(t, test.profile), "  devices:")
			driver := templates.New(configtest.SetOf(t, documents), claimstest.NewNode("n"), templates.Slices{}, nil)
			_, err := driver.Prepare([]*resourcev1.ResourceClaim{claim})
			if test.refused != "" {
				require.ErrorContains(t, err, ": error decoding config parameters: "+test.refused)
				return
			}
			require.NoError(t, err)
			views, err := viewsOf(t, documents, claim, naming(""))
			require.NoError(t, err)
			require.Equal(t, test.env, views[0].Env)
			var nodes, mounts []string
			for _, node := range views[0].DeviceNodes {
				nodes = append(nodes, node.Path)
			}
			for _, mount := range views[0].Mounts {
				mounts = append(mounts, mount.ContainerPath)
			}
			require.Equal(t, test.nodes, nodes)
			require.Equal(t, test.mounts, mounts)
		})
	}
}
