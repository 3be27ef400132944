package overview

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
)

// TestOverview counts devices, and has the problems in the order in which they matter.
func TestOverview(t *testing.T) {
	t.Parallel()
	require.Equal(t, `10 devices: 1 free, 3 in use, 3 blocked, 2 unhealthy, 1 gone. 6 problems

Devices:
DRIVER               NODE POOL   PRODUCT                                     NODES      DEVICES   USED     FREE   BLOCKED   IN USE   UNHEALTHY
fabric.example.com   <none>      NVIDIA H100 80GB HBM3 Tensor Core           <shared>   1         25%      0      0         1        0
gpu.example.com      h100        NVIDIA H100 80GB HBM3 Tensor Core           2          5         40%      1      1         1        2
gpu.example.com      mig         NVIDIA H100 80GB HBM3 Tensor Core           1          1         50%      0      1         0        0
gpu.example.com      mig         NVIDIA H100 80GB HBM3 Tensor Core (parts)   1          2         <none>   0      1         1        0

Problems, the most important first:
PROBLEM                                                                                        DEVICES   WHERE    PODS       MORE
failing: Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered     1         a        ml/fails   kubectl dra why pod/fails -n ml
Pods with claims are not scheduled                                                             <none>    <none>   ml/waits   kubectl dra why -A
claims have devices that gpu.example.com publishes no more                                     1         d        ml/holds   kubectl dra devices --state gone
the node is not Ready                                                                          2         b        ml/part    kubectl describe node b
the pool of gpu.example.com is incomplete, and the scheduler gives none of it: 1 of 2 slices   1         c        <none>     kubectl dra check
tainted: ecc=double-bit:NoExecute                                                              1         a        <none>     kubectl dra devices --state tainted
`, worldtest.New(t, worldtest.Devices()).Ask(New))
}

// TestGroups counts devices by the labels that the user names, and by no label where nodes have none.
func TestGroups(t *testing.T) {
	t.Parallel()
	require.Contains(t, worldtest.New(t, worldtest.Devices()).Ask(New, "-L", "zone,x/other", "-l", "zone=z-c"), `Devices:
DRIVER            ZONE   OTHER    PRODUCT                             NODES   DEVICES   USED   FREE   BLOCKED   IN USE   UNHEALTHY
gpu.example.com   z-c    <none>   NVIDIA H100 80GB HBM3 Tensor Core   1       1         0%     0      1         0        0
`)
	require.Equal(t, `1 device: 1 free. No problems

Devices:
DRIVER            PRODUCT                             NODES   DEVICES   USED   FREE   IN USE   UNHEALTHY
gpu.example.com   NVIDIA H100 80GB HBM3 Tensor Core   1       1         0%     1      0        0
`, worldtest.New(t, worldtest.Slice("a", "gpu-0")).Ask(New))
	require.Equal(t, "No DRA driver has published a device: there is no ResourceSlice\n", worldtest.New(t).Ask(New))
}

// TestTogether has one problem for all nodes that have the same.
func TestTogether(t *testing.T) {
	t.Parallel()
	var objects []runtime.Object
	for _, node := range []string{"n-10", "n-9", "n-1", "n-2"} {
		slice := worldtest.Slice(node, "gpu-0", "gpu-1")
		slice.Spec.Pool.ResourceSliceCount = 2
		objects = append(objects, slice)
	}
	text := worldtest.New(t, objects).Ask(New)
	require.Contains(t, text, ". 1 problem\n")
	require.Contains(t, text, "   8         n-1, n-2 and 2 more   <none> ")
}

// TestFields has what programs read.
func TestFields(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `[
		{"type": "total", "nodePool": ["h100"], "driver": "gpu.example.com", "product": "NVIDIA H100 80GB HBM3 Tensor Core", "nodes": 1, "usage": {"used": 2, "total": 4},
		 "devices": {"free": 1, "blocked": 0, "allocated": 0, "prepared": 1, "failing": 1, "tainted": 1}},
		{"type": "problem", "problem": "failing: Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered", "devices": 1, "where": ["a"], "pods": ["ml/fails"],
		 "next": "kubectl dra why pod/fails -n ml"},
		{"type": "problem", "problem": "Pods with claims are not scheduled", "pods": ["ml/waits"], "next": "kubectl dra why -A"},
		{"type": "problem", "problem": "tainted: ecc=double-bit:NoExecute", "devices": 1, "where": ["a"], "next": "kubectl dra devices --state tainted"}
	]`, worldtest.New(t, worldtest.Devices()).Items(New, "--node", "a"))
}
