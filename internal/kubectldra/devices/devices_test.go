package devices

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
)

// TestDevices says of each device in which state it is, and who has it since when.
func TestDevices(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.Devices())
	require.Equal(t, `10 devices: 1 free, 3 in use, 3 blocked, 2 unhealthy, 1 gone

NODE       DRIVER               POOL     DEVICE           STATE      SINCE    USED     PRODUCT                             CLAIM      POD        REASON
<shared>   fabric.example.com   rail-1   port             prepared   59m      25%      NVIDIA H100 80GB HBM3 Tensor Core   ml/share   ml/runs    <none>
a          gpu.example.com      a        gpu-0            prepared   59m      <none>   NVIDIA H100 80GB HBM3 Tensor Core   ml/runs    ml/runs    <none>
a          gpu.example.com      a        gpu-1            failing    59m      <none>   NVIDIA H100 80GB HBM3 Tensor Core   ml/fails   ml/fails   Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered
a          gpu.example.com      a        gpu-2            tainted    60m      <none>   NVIDIA H100 80GB HBM3 Tensor Core   <none>     <none>     ecc=double-bit:NoExecute
a          gpu.example.com      a        gpu-3            free       <none>   <none>   NVIDIA H100 80GB HBM3 Tensor Core   <none>     <none>     <none>
b          gpu.example.com      b        gpu-0            blocked    <none>   <none>   NVIDIA H100 80GB HBM3 Tensor Core   <none>     <none>     node b is not Ready
b          gpu.example.com      b          gpu-0-half-0   prepared   59m      <none>   NVIDIA H100 80GB HBM3 Tensor Core   ml/part    ml/part    node b is not Ready
b          gpu.example.com      b          gpu-0-half-1   blocked    <none>   <none>   NVIDIA H100 80GB HBM3 Tensor Core   <none>     <none>     node b is not Ready
c          gpu.example.com      c        gpu-0            blocked    <none>   <none>   NVIDIA H100 80GB HBM3 Tensor Core   <none>     <none>     its pool has 1 of 2 slices
d          gpu.example.com      d        gpu-9            gone       59m      <none>   <none>                              ml/lost    ml/holds   <none>
`, w.Ask(New))
	require.Contains(t, w.Ask(New, "a/gpu-0", "-o", "wide"), "GPU-a-gpu-0")
	require.Contains(t, w.Ask(New, "a/gpu-0", "-L", "example.com/productName"), "PRODUCTNAME")
}

// TestSelection selects by names, state, attributes, and the labels of nodes.
func TestSelection(t *testing.T) {
	t.Parallel()
	const pool, driver = `-o=jsonpath={range .items[*]}{.pool}/{.device} {end}`, "--driver=" + worldtest.Driver
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"free":                    {[]string{"--state", "free"}, "a/gpu-3"},
		"in use of a driver":      {[]string{"--state", "in-use", driver}, "a/gpu-0 b/gpu-0-half-0"},
		"unhealthy":               {[]string{"--state", "unhealthy"}, "a/gpu-1 a/gpu-2 d/gpu-9"},
		"node":                    {[]string{"--node", "b"}, "b/gpu-0 b/gpu-0-half-0 b/gpu-0-half-1"},
		"labels":                  {[]string{"-l", "zone in (z-c)"}, "c/gpu-0"},
		"attribute":               {[]string{"--attribute", "productName=*H100*", "--attribute", "uuid=GPU-a*", "--state", "free"}, "a/gpu-3"},
		"attribute that is not":   {[]string{"--attribute", "uuid!=GPU-*", driver}, "d/gpu-9"},
		"capacity":                {[]string{"--attribute", "bandwidth"}, "rail-1/port"},
		"device":                  {[]string{"gpu-3"}, "a/gpu-3"},
		"as the scheduler has it": {[]string{worldtest.Driver + "/c/gpu-0"}, "c/gpu-0"},
		"UUID":                    {[]string{"GPU-b-gpu-0"}, "b/gpu-0"},
		"pattern":                 {[]string{"gpu-0-half-*"}, "b/gpu-0-half-0 b/gpu-0-half-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, strings.TrimSpace(worldtest.New(t, worldtest.Devices()).Ask(New, append(test.arguments, pool)...)))
		})
	}
}

// TestNothing says why no device is found.
func TestNothing(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"gpu-77":                  "No device is named gpu-77",
		"--driver=gpu.exampl.com": "No driver gpu.exampl.com has published a device: did you mean gpu.example.com?",
		"--attribute=colour=red":  "No device has an attribute colour: kubectl dra devices -o wide shows all",
		"--selector=zone=z-d":     "No device is selected",
	} {
		require.Equal(t, want+"\n", worldtest.New(t, worldtest.Devices()).Ask(New, argument))
	}
}

// TestFields has what programs read.
func TestFields(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `[{
		"node": "a", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0", "state": "prepared", "since": "2026-01-02T03:04:07Z",
		"uuid": "GPU-a-gpu-0", "product": "NVIDIA H100 80GB HBM3 Tensor Core", "memory": "80Gi",
		"attributes": {"productName": "NVIDIA H100 80GB HBM3 Tensor Core", "uuid": "GPU-a-gpu-0"}, "capacity": {"memory": "80Gi"},
		"claims": [{"namespace": "ml", "name": "runs", "pods": ["runs"], "prepared": true}]
	}]`, worldtest.New(t, worldtest.Devices()).Items(New, "a/gpu-0"))
}
