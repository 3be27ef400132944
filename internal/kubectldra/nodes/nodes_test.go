package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
)

// TestNodes has a row for each product of a node, and rows for what nodes share.
func TestNodes(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.Devices())
	require.Equal(t, `4 nodes have 10 devices: 1 free, 3 in use, 3 blocked, 2 unhealthy, 1 gone

NODE       READY   DRIVER               PRODUCT                                     DEVICES   FREE   BLOCKED   IN USE   UNHEALTHY   PODS
<shared>   True    fabric.example.com   NVIDIA H100 80GB HBM3 Tensor Core           1         0      0         1        0           ml/runs
a          True    gpu.example.com      NVIDIA H100 80GB HBM3 Tensor Core           4         1      0         1        2           ml/fails, ml/runs
b          False   gpu.example.com      NVIDIA H100 80GB HBM3 Tensor Core           1         0      1         0        0           <none>
b          False   gpu.example.com      NVIDIA H100 80GB HBM3 Tensor Core (parts)   2         0      1         1        0           ml/part
c          True    gpu.example.com      NVIDIA H100 80GB HBM3 Tensor Core           1         0      1         0        0           <none>
d          True    gpu.example.com      <none>                                      1         0      0         0        1           ml/holds
`, w.Ask(New))
	require.Equal(t, `1 node has 1 device: 1 free

NODE   PRODUCT                             DEVICES   FREE   IN USE   PODS     NODEPOOL
a      NVIDIA H100 80GB HBM3 Tensor Core   1         1      0        <none>   h100
`, w.Ask(New, "-L", "karpenter.sh/nodepool", "a", "node/b", "--state", "free"))
	require.Equal(t, "No device is on node z\n", w.Ask(New, "z"))
}
