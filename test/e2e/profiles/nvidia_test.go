package profiles

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// nvidiaProfiles are the cases of NVIDIA's profiles.
var nvidiaProfiles = map[string]profileCase{
	"nvidia-h100":        {check: checkH100Sample},
	"nvidia-h100-mig":    {check: checkMIGSample},
	"nvidia-gb200-nvl72": {nodes: 2, check: checkGB200Sample},
	"nvidia-l4":          {check: checkL4Sample},
	"nvidia-t4":          {check: checkT4Sample},
}

// TestMIGBesideWholeGPUs has the profile with MIG select instance types only
// where the one without is not there.
func TestMIGBesideWholeGPUs(t *testing.T) {
	t.Parallel()
	both, mig := buildProfiles(t, "nvidia-h100", "nvidia-h100-mig"), buildProfiles(t, "nvidia-h100-mig")
	for name, tt := range map[string]struct {
		built        *builtProfiles
		instanceType string
		profile      string
		devices      int
	}{
		"type":                  {both, "p5.48xlarge", "", 8},
		"label":                 {both, "", "nvidia-h100", 8},
		"label of MIG":          {both, "", "nvidia-h100-mig", 208},
		"type and label":        {both, "p5.48xlarge", "nvidia-h100", 8},
		"type and label of MIG": {both, "p5.48xlarge", "nvidia-h100-mig", 208},
		"type, only MIG":        {mig, "p5.48xlarge", "", 208},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pools := tt.built.poolsOf(t, map[string]string{"node.kubernetes.io/instance-type": tt.instanceType, "dra.kwok.x-k8s.io/profile": tt.profile})
			require.Len(t, pools, 1)
			require.Len(t, pools[0].Devices, tt.devices)
		})
	}
}

// gpusOf are the GPUs of a profile with options of the driver.
func gpusOf(t *testing.T, profile string, options ...string) []resourcev1.Device {
	t.Helper()
	names := []string{profile}
	for _, option := range options {
		names = append(names, "../driver-options/nvidia/"+option)
	}
	for _, pool := range buildProfiles(t, names...).poolsOf(t, map[string]string{"dra.kwok.x-k8s.io/profile": profile}) {
		if pool.Driver == "gpu.nvidia.com" {
			return pool.Devices
		}
	}
	return nil
}

// TestNVIDIADriverOptions has the components change what the driver's feature gates change, and nothing else.
func TestNVIDIADriverOptions(t *testing.T) {
	t.Parallel()
	const h100, gb200 = "nvidia-h100", "nvidia-gb200-nvl72"
	t.Run("consumable-shares", func(t *testing.T) {
		t.Parallel()
		for _, profile := range []string{h100, gb200, "nvidia-l4", "nvidia-t4"} {
			plain := gpusOf(t, profile)
			for i, gpu := range gpusOf(t, profile, "consumable-shares") {
				require.True(t, *gpu.AllowMultipleAllocations)
				require.Equal(t, int64(4), gpu.Capacity["shares"].RequestPolicy.ValidRange.Max.Value())
				memory := gpu.Capacity["memory"]
				require.True(t, memory.Value.Equal(plain[i].Capacity["memory"].Value), profile)
				require.True(t, memory.Value.Equal(*memory.RequestPolicy.ValidRange.Max), profile)
				gpu.AllowMultipleAllocations, gpu.Capacity = nil, plain[i].Capacity
				require.Equal(t, plain[i], gpu)
			}
		}
	})
	t.Run("fabric-manager", func(t *testing.T) {
		t.Parallel()
		partitions := map[resourcev1.QualifiedName][]int64{}
		for _, gpu := range gpusOf(t, h100, "fabric-manager", "consumable-shares") {
			require.True(t, *gpu.AllowMultipleAllocations, "several options change one profile")
			for _, name := range []resourcev1.QualifiedName{"gpuModuleID", "partition1", "partition2", "partition4", "partition8"} {
				partitions[name] = append(partitions[name], *gpu.Attributes[name].IntValue)
			}
		}
		require.Equal(t, map[resourcev1.QualifiedName][]int64{
			"gpuModuleID": {1, 2, 3, 4, 5, 6, 7, 8},
			"partition1":  {7, 8, 9, 10, 11, 12, 13, 14},
			"partition2":  {3, 4, 3, 4, 5, 6, 5, 6},
			"partition4":  {1, 1, 1, 1, 2, 2, 2, 2},
			"partition8":  {0, 0, 0, 0, 0, 0, 0, 0},
		}, partitions)
	})
	t.Run("list-attributes", func(t *testing.T) {
		t.Parallel()
		const numaNode = "resource.kubernetes.io/numaNode"
		for _, profile := range []string{h100, "nvidia-h100-mig", gb200} {
			plain := gpusOf(t, profile)
			for i, gpu := range gpusOf(t, profile, "list-attributes") {
				require.Equal(t, []int64{*plain[i].Attributes[numaNode].IntValue}, gpu.Attributes[numaNode].IntValues)
			}
		}
	})
	t.Run("host-managed-imex", func(t *testing.T) {
		t.Parallel()
		built := buildProfiles(t, gb200, "../driver-options/nvidia/host-managed-imex")
		for _, class := range built.classes {
			require.NotContains(t, class.Name, "daemon")
		}
		require.Equal(t, map[string]int{"gpu.nvidia.com": 4, "compute-domain.nvidia.com": 1}, built.deviceCounts())
	})
}

// claimOfPod is the only claim of a Pod.
func (p *profile) claimOfPod(namespace, pod string) *resourcev1.ResourceClaim {
	p.Helper()
	claims := claimsOf(p.H, p.Pod(namespace, pod))
	require.Len(p, claims, 1)
	return claims[0]
}

func results(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	return claim.Status.Allocation.Devices.Results
}

// configured are the requests of a claim that have opaque configuration. From
// Kubernetes 1.37 on, the scheduler does not name them where they are all.
func configured(claim *resourcev1.ResourceClaim) []string {
	var requests []string
	for _, configuration := range claim.Status.Allocation.Devices.Config {
		requests = append(requests, configuration.Requests...)
		if len(configuration.Requests) == 0 {
			for _, request := range claim.Spec.Devices.Requests {
				requests = append(requests, request.Name)
			}
		}
	}
	slices.Sort(requests)
	return requests
}

// attributes are the values that the devices of a claim have for an attribute.
func (p *profile) attributes(claim *resourcev1.ResourceClaim, name resourcev1.QualifiedName) []resourcev1.DeviceAttribute {
	p.Helper()
	var values []resourcev1.DeviceAttribute
	for _, result := range results(claim) {
		device := harness.DeviceNamed(p, p.pools(result.Pool)[result.Driver][result.Pool], result.Device)
		require.Contains(p, device.Attributes, name)
		values = append(values, device.Attributes[name])
	}
	return values
}

// requireSame has all devices of a claim agree on an attribute.
func (p *profile) requireSame(claim *resourcev1.ResourceClaim, name resourcev1.QualifiedName, devices int) {
	p.Helper()
	values := p.attributes(claim, name)
	require.Len(p, values, devices)
	for _, value := range values {
		require.Equal(p, values[0], value)
	}
}

func checkH100Sample(p *profile) {
	p.requireSame(p.claimOfPod(p.name, "nvidia-h100-near"), "resource.kubernetes.io/numaNode", 2)

	// Kubernetes may miss claims that are made at the same time as the quota, until
	// it counts again; so have it count again.
	const quota, name = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices", "nvidia-h100-gpus"
	quotas := p.Client.CoreV1().ResourceQuotas(p.name)
	_, err := quotas.Patch(p.Context(), name, types.MergePatchType, []byte(`{"spec": {"hard": {"`+quota+`": "3"}}}`), metav1.PatchOptions{})
	require.NoError(p, err)
	p.Eventually(harness.Patience, func() string {
		current, err := quotas.Get(p.Context(), name, metav1.GetOptions{})
		require.NoError(p, err)
		hard, used := current.Status.Hard[quota], current.Status.Used[quota]
		if hard.Value() != 3 || used.Value() != 3 {
			return "the quota counts " + used.String() + " devices of " + hard.String() + ", want 3 of 3"
		}
		return ""
	})
	spec := harness.ClaimSpec("gpu.nvidia.com")
	spec.Devices.Requests[0].Name = "gpu"
	_, err = p.Client.ResourceV1().ResourceClaims(p.name).Create(p.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "one-more"}, Spec: spec,
	}, metav1.CreateOptions{})
	require.True(p, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(p, err, "exceeded quota: "+name)
}

func checkMIGSample(p *profile) {
	p.requireSame(p.claimOfPod(p.name, "nvidia-h100-mig-same-gpu"), "parentUUID", 4)
	half := p.claimOfPod(p.name, "nvidia-h100-mig-half-or-whole")
	require.Equal(p, "gpu/half", results(half)[0].Request)

	byName := p.Pod(p.name, "nvidia-h100-mig-by-name").Status.ExtendedResourceClaimStatus
	require.Equal(p, "nvidia.com/mig-4g.40gb", byName.RequestMappings[0].ResourceName)
	require.Regexp(p, `^gpu-\d-mig-4g40gb-5-0$`, results(p.Claim(p.name, byName.ResourceClaimName))[0].Device)

	// Five GPUs are taken whole, and of the other three some partitions.
	spec := harness.ClaimSpec("gpu.nvidia.com")
	spec.Devices.Requests[0].Name = "gpu"
	p.CreateClaim(p.name, "none-left", spec)
	pod := harness.NewPod("none-left", "", "none-left")
	pod.Spec.NodeSelector = map[string]string{"dra.kwok.x-k8s.io/profile": p.name}
	p.CreatePod(p.name, pod)
	p.Unschedulable(p.name, "none-left")
}

func checkGB200Sample(p *profile) {
	nodes := map[string]bool{}
	for _, worker := range []string{"nvidia-gb200-nvl72-worker-0", "nvidia-gb200-nvl72-worker-1"} {
		nodes[p.Pod(p.name, worker).Spec.NodeName] = true
		claim := p.claimOfPod(p.name, worker)
		var have []string
		for _, result := range results(claim) {
			have = append(have, result.Driver+"/"+result.Device)
		}
		slices.Sort(have)
		require.Equal(p, []string{
			"compute-domain.nvidia.com/channel-0",
			"gpu.nvidia.com/gpu-0", "gpu.nvidia.com/gpu-1", "gpu.nvidia.com/gpu-2", "gpu.nvidia.com/gpu-3",
		}, have)
		require.Equal(p, []string{"channel"}, configured(claim))
	}
	require.Len(p, nodes, 2, "each worker has a tray of its own")
}

func checkL4Sample(p *profile) {
	claim := p.Claim(p.name, "nvidia-l4-time-sliced")
	require.Len(p, claim.Status.ReservedFor, 2)
	require.Len(p, results(claim), 1)
	require.Equal(p, []string{"gpu"}, configured(claim))
}

func checkT4Sample(p *profile) {
	status := p.Pod(p.name, "nvidia-t4-extended-resource").Status.ExtendedResourceClaimStatus
	require.Equal(p, "nvidia.com/gpu", status.RequestMappings[0].ResourceName)
	claim := p.Claim(p.name, status.ResourceClaimName)
	require.Equal(p, "gpu.nvidia.com", claim.Spec.Devices.Requests[0].Exactly.DeviceClassName)
	require.Equal(p, "gpu-0", results(claim)[0].Device)
}
