package profiles

import (
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// exampleProfiles are the cases of the DRA example driver's profiles.
var exampleProfiles = map[string]profileCase{
	"cpu-example":        {check: checkCPUExampleSample},
	"dra-example-driver": {devices: map[string]int{"gpu.chart.example.com": 10, "net.chart.example.com": 4}, check: checkExampleChartSample},
	"gpu-example":        {check: checkExampleSample},
	"net-example":        {check: checkNetExampleSample},
}

func checkExampleSample(p *profile) {
	claim := p.claimOfPod(p.name, "gpu-example-containers")
	require.Len(p, results(claim), 1, "both containers use one device")
	device := harness.DeviceNamed(p, p.SlicesOf(results(claim)[0].Pool), results(claim)[0].Device)
	require.JSONEq(p, `{"uuid": {"string": "`+*device.Attributes["uuid"].StringValue+`"}, "model": {"string": "LATEST-GPU-MODEL"}, "driverVersion": {"version": "1.0.0"}}`,
		string(claim.Status.Devices[0].Data.Raw))
	require.Empty(p, claim.Status.Devices[0].Conditions)

	require.Len(p, p.Claim(p.name, "gpu-example-shared").Status.ReservedFor, 2)
	require.Equal(p, []string{"partitioned", "time-sliced"}, configured(p.claimOfPod(p.name, "gpu-example-configured")))
	require.Equal(p, "gpu/large", results(p.claimOfPod(p.name, "gpu-example-alternatives"))[0].Request)

	seen := results(p.claimOfPod("gpu-example-admin", "monitor"))
	require.Len(p, seen, 8)
	for _, result := range seen {
		require.True(p, *result.AdminAccess)
	}
}

func checkExampleChartSample(p *profile) {
	quarter := p.Claim(p.name, "dra-example-driver-quarter")
	require.Equal(p, "gpu-0-partition-0", results(quarter)[0].Device)
	require.Contains(p, string(quarter.Status.Devices[0].Data.Raw), "LATEST-GPU-MODEL", "with gpuDeviceStatus=true")
	require.Empty(p, quarter.Status.Devices[0].Conditions)
	nic := p.Claim(p.name, "dra-example-driver-nic")
	require.Equal(p, "nic-0", results(nic)[0].Device)
	require.Empty(p, nic.Status.Devices, "the driver writes nothing")
	require.Equal(p, []int64{10e9}, p.consumed("dra-example-driver-nic", "ingressBandwidth"))
}

// consumed is how much of a capacity a Pod's claim takes of its devices, one after the other.
func (p *profile) consumed(pod string, capacity resourcev1.QualifiedName) []int64 {
	p.Helper()
	var amounts []int64
	for _, result := range results(p.claimOfPod(p.name, pod)) {
		amount := result.ConsumedCapacity[capacity]
		amounts = append(amounts, amount.Value())
	}
	return amounts
}

func checkNetExampleSample(p *profile) {
	for _, pod := range []string{"net-example-part-0", "net-example-part-1", "net-example-burst"} {
		require.Equal(p, "nic-0", results(p.claimOfPod(p.name, pod))[0].Device)
		require.Equal(p, []int64{1}, p.consumed(pod, "vfs"))
	}
	require.Equal(p, []int64{10e9}, p.consumed("net-example-part-0", "ingressBandwidth"))
	require.Equal(p, []int64{5e9}, p.consumed("net-example-part-1", "egressBandwidth"))
	require.Equal(p, []int64{1e9}, p.consumed("net-example-burst", "egressBandwidth"))
	require.Equal(p, []string{"nic"}, configured(p.claimOfPod(p.name, "net-example-burst")))
}

func checkCPUExampleSample(p *profile) {
	require.Equal(p, []int64{1, 1}, p.consumed("cpu-example-two", "cpu.example.com/cpu"))
	require.Equal(p, []int64{3}, p.consumed("cpu-example-three", "cpu.example.com/cpu"))
	require.Equal(p, "numa-3", results(p.claimOfPod(p.name, "cpu-example-three"))[0].Device)
}
