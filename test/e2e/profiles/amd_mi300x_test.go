package profiles

import (
	"maps"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// otherProfiles are the cases of all profiles but NVIDIA's.
var otherProfiles = map[string]profileCase{
	"amd-mi300x":     {check: checkMI300XSample},
	"aws-trainium":   {check: checkTrainiumSample},
	"cpu":            {check: checkCPUSample},
	"google-tpu-v5e": {nodes: 2, check: checkTPUSample, unplaced: "google-tpu-v5e-newer-or-this"},
	"intel-gaudi":    {check: checkGaudiSample},
	"rdma-nic":       {check: checkRDMASample},
	"sriov-nic":      {check: checkSRIOVSample},
	"xilinx-u250":    {check: checkFPGASample},
}

const (
	mi300XWithPartitions = "amd-mi300x/auto-partition"
	mi300XType           = "BM.GPU.MI300X.8"
)

// TestMI300XSelection has the two ways in which the driver publishes MI300X keep
// apart, and the NICs go with either.
func TestMI300XSelection(t *testing.T) {
	t.Parallel()
	all := buildProfiles(t, "amd-mi300x", mi300XWithPartitions, "rdma-nic")
	for name, tt := range map[string]struct {
		instanceType, profile string
		gpus, nics            int
	}{
		"type":                         {mi300XType, "", 8, 8},
		"label":                        {"", "amd-mi300x", 8, 0},
		"label for partitions":         {"", "amd-mi300x-auto-partition", 48, 0},
		"type and label":               {mi300XType, "amd-mi300x", 8, 8},
		"type and label of partitions": {mi300XType, "amd-mi300x-auto-partition", 48, 8},
		"type without these NICs":      {"Standard_ND96isr_MI300X_v5", "", 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			have := map[string]int{}
			for _, pool := range all.poolsOf(t, map[string]string{corev1.LabelInstanceTypeStable: tt.instanceType, "dra.kwok.x-k8s.io/profile": tt.profile}) {
				have[pool.Driver] += len(pool.Devices)
			}
			require.Equal(t, tt.gpus, have["gpu.amd.com"])
			require.Equal(t, tt.nics, have["dra.net"])
		})
	}
}

// TestMI300XExtendedResource has only whole GPUs be amd.com/gpu.
func TestMI300XExtendedResource(t *testing.T) {
	t.Parallel()
	for class, components := range map[string][]string{
		"gpu.amd.com":     {"amd-mi300x"},
		"gpu.amd.com-spx": {"amd-mi300x", mi300XWithPartitions},
	} {
		var named []string
		for _, built := range buildProfiles(t, components...).classes {
			if name := built.Spec.ExtendedResourceName; name != nil {
				require.Equal(t, "amd.com/gpu", *name)
				named = append(named, built.Name)
			}
		}
		require.Equal(t, []string{class}, named)
	}
}

// requireDistinct has all devices of a claim differ in an attribute.
func (p *profile) requireDistinct(claim *resourcev1.ResourceClaim, name resourcev1.QualifiedName, devices int) {
	p.Helper()
	p.Run("distinctAttribute", func(t *testing.T) {
		p := p.on(t)
		p.Needs(35, "the scheduler compares where the values of distinctAttribute are in memory, not the values")
		values := p.attributes(claim, name)
		require.Len(p, values, devices)
		for i := range values {
			require.NotContains(p, values[:i], values[i])
		}
	})
}

// chosen are the requests, or alternatives of one, that a Pod's devices are for.
func (p *profile) chosen(pod string) []string {
	p.Helper()
	requests := map[string]bool{}
	for _, result := range results(p.claimOfPod(p.name, pod)) {
		requests[result.Request] = true
	}
	return slices.Sorted(maps.Keys(requests))
}

// run is what a profile does with its sample once its pools should be there, for
// samples that are not in the profile's own sample.yaml.
func (p *profile) run(node *corev1.Node, file string) {
	p.Helper()
	_, err := p.Client.CoreV1().Nodes().Create(p.Context(), node, metav1.CreateOptions{})
	require.NoError(p, err)
	p.requirePublished(node.Name)
	text, err := os.ReadFile(profilePath(file))
	require.NoError(p, err)
	p.sample = &sample{objects: documents(p.T, text)}
	for _, object := range p.sample.objects {
		object.SetNamespace(p.name)
		if object.GetKind() == "Pod" {
			var pod corev1.Pod
			convert(p.T, object, &pod)
			p.sample.pods = append(p.sample.pods, &pod)
		}
	}
	p.applySample()
	for _, pod := range p.sample.pods {
		p.requirePrepared(pod)
	}
}

func checkMI300XSample(p *profile) {
	p.requireDistinct(p.claimOfPod(p.name, "amd-mi300x-apart"), "numaNode", 2)
	require.Equal(p, []string{"gpu/whole"}, p.chosen("amd-mi300x-partition-or-whole"))
	require.Equal(p, []string{"gpu"}, configured(p.claimOfPod(p.name, "amd-mi300x-configured")))

	p.apply(overlay(p.T, "amd-mi300x", mi300XWithPartitions, "rdma-nic"))
	p.Run("auto-partition", func(t *testing.T) {
		testAutoPartition(&profile{H: p.On(t), name: "amd-mi300x-auto-partition"})
	})
	p.Run("with rdma-nic", func(t *testing.T) {
		testGPUBesideNIC(&profile{H: p.On(t), name: "amd-mi300x-with-rdma-nic"})
	})
}

func testAutoPartition(p *profile) {
	p.builtProfiles = buildProfiles(p.T, "amd-mi300x", mi300XWithPartitions)
	p.templates = slices.DeleteFunc(p.templates, func(template v1alpha1.ResourcePoolTemplate) bool { return template.Name != p.name })
	node := harness.FakeNode(p.name, "")
	node.Labels = map[string]string{"dra.kwok.x-k8s.io/profile": p.name}
	p.run(node, mi300XWithPartitions+"/sample.yaml")

	one, other := results(p.claimOfPod(p.name, p.name+"-0"))[0], results(p.claimOfPod(p.name, p.name+"-1"))[0]
	require.Equal(p, one.Device, other.Device, "two parts of one GPU")
	require.NotEqual(p, *one.ShareID, *other.ShareID)
	for name, want := range map[resourcev1.QualifiedName]string{"partitions": "1", "memory": "24574Mi", "computeUnits": "38", "simdUnits": "152"} {
		have := one.ConsumedCapacity[name]
		require.Equal(p, want, have.String(), name)
	}
	whole := p.claimOfPod(p.name, p.name+"-whole")
	require.Nil(p, results(whole)[0].ShareID)
	p.Run("counters of shared devices", func(t *testing.T) {
		p := p.on(t)
		p.Needs(36, "the scheduler does not count what a device that claims share takes of counters")
		require.NotEqual(p, one.Device[:len("gpu-0")], results(whole)[0].Device[:len("gpu-0")], "another GPU, since this one is divided")
	})
}

func testGPUBesideNIC(p *profile) {
	p.builtProfiles = buildProfiles(p.T, "amd-mi300x", "rdma-nic")
	node := harness.FakeNode(p.name, "")
	node.Labels = map[string]string{corev1.LabelInstanceTypeStable: mi300XType}
	p.run(node, "amd-mi300x/sample-with-rdma-nic.yaml")

	for _, pod := range p.sample.pods {
		claim := p.claimOfPod(p.name, pod.Name)
		p.requireSame(claim, "resource.kubernetes.io/pcieRoot", 2)
		require.Equal(p, []string{"gpu", "nic"}, p.chosen(pod.Name))
		require.Equal(p, "dra.net", claim.Status.Devices[0].Driver, "only this driver reports")
	}
}

func checkTrainiumSample(p *profile) {
	p.requireSame(p.claimOfPod(p.name, "aws-trainium-4-connected"), "resource.aws.com/devicegroup4_id", 4)
	p.requireSame(p.claimOfPod(p.name, "aws-trainium-8-connected"), "resource.aws.com/devicegroup8_id", 8)
	require.Equal(p, []string{"neuron"}, configured(p.claimOfPod(p.name, "aws-trainium-logical-cores")))
}

func checkTPUSample(p *profile) {
	require.Len(p, results(p.claimOfPod(p.name, "google-tpu-v5e-node")), 4, "all chips of a node")
	if !harness.AlphaDevices() {
		require.Len(p, results(p.claimOfPod(p.name, p.unplaced)), 4, "all chips of the other node")
		require.Equal(p, []string{"tpus/v5e"}, p.chosen(p.unplaced))
	}
}

func checkGaudiSample(p *profile) {
	p.requireDistinct(p.claimOfPod(p.name, "intel-gaudi-apart"), "resource.kubernetes.io/pcieRoot", 2)
	require.Equal(p, []string{"gaudi/newer"}, p.chosen("intel-gaudi-older-or-newer"))
}

func checkFPGASample(p *profile) {
	shared := p.Claim(p.name, "xilinx-u250-shared")
	require.Len(p, shared.Status.ReservedFor, 2)
	require.Len(p, results(shared), 1)
	require.Equal(p, []string{"fpga/older"}, p.chosen("xilinx-u250-shell"))
}

func checkCPUSample(p *profile) {
	one, other := results(p.claimOfPod(p.name, "cpu-eight-0"))[0], results(p.claimOfPod(p.name, "cpu-eight-1"))[0]
	require.Equal(p, "cpudevnuma000", one.Device)
	require.Equal(p, one.Device, other.Device)
	require.NotEqual(p, *one.ShareID, *other.ShareID)
	consumed := one.ConsumedCapacity["dra.cpu/cpu"]
	require.Equal(p, "8", consumed.String())
	p.requireDistinct(p.claimOfPod(p.name, "cpu-spread"), "resource.kubernetes.io/numaNode", 2)
	require.Equal(p, []string{"cpus/few"}, p.chosen("cpu-many-or-few"))
}

func checkRDMASample(p *profile) {
	claim := p.claimOfPod(p.name, "rdma-nic-as-it-is")
	shown := claim.Status.Devices[0]
	require.Equal(p, "Ready", shown.Conditions[0].Type)
	for name, have := range map[resourcev1.QualifiedName]string{
		"dra.net/ifName": shown.NetworkData.InterfaceName, "dra.net/mac": shown.NetworkData.HardwareAddress, "dra.net/ipv4": shown.NetworkData.IPs[0],
	} {
		require.Equal(p, *p.attributes(claim, name)[0].StringValue, have, name)
	}
	_, err := net.ParseMAC(shown.NetworkData.HardwareAddress)
	require.NoError(p, err)

	configured := p.claimOfPod(p.name, "rdma-nic-configured").Status.Devices[0].NetworkData
	require.Equal(p, "net1", configured.InterfaceName)
	require.Equal(p, []string{"192.0.2.10/24"}, configured.IPs)
	p.requireDistinct(p.claimOfPod(p.name, "rdma-nic-apart"), "resource.kubernetes.io/numaNode", 2)
}

func checkSRIOVSample(p *profile) {
	claim := p.claimOfPod(p.name, "sriov-nic-interface")
	shown := claim.Status.Devices[0]
	require.Empty(p, shown.Conditions)
	require.Equal(p, "net1", shown.NetworkData.InterfaceName)
	require.Regexp(p, `^10\.0\.1\.\d+/24$`, shown.NetworkData.IPs[0])
	_, err := net.ParseMAC(shown.NetworkData.HardwareAddress)
	require.NoError(p, err)
	address := *p.attributes(claim, "sriovnetwork.k8snetworkplumbingwg.io/pciAddress")[0].StringValue
	require.JSONEq(p, `{
		"vfConfig": {"apiVersion": "sriovnetwork.k8snetworkplumbingwg.io/v1alpha1", "kind": "VfConfig", "ifName": "net1", "netAttachDefName": "sriov-network"},
		"cniConfig": {"cniVersion": "1.0.0", "name": "sriov-network", "type": "sriov", "deviceID": "`+address+`"}
	}`, string(shown.Data.Raw))

	p.requireDistinct(p.claimOfPod(p.name, "sriov-nic-bond"), "sriovnetwork.k8snetworkplumbingwg.io/PFName", 2)
	require.Equal(p, []string{"vf/near"}, p.chosen("sriov-nic-dpdk"))
	require.Equal(p, []string{"vf"}, configured(p.claimOfPod(p.name, "sriov-nic-dpdk")))
}
