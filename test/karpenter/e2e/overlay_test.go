package e2e

import (
	"fmt"

	"github.com/stretchr/testify/require"
)

// nodeOverlay is one by Karpenter's own definition, which keeps no slices in the
// spec.
const nodeOverlay = `---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: overlay
  annotations:
    dra.kwok.x-k8s.io/resource-slices: |
      - spec:
          driver: asic.example.com
          devices:
          - name: asic-0
            attributes: {model: {string: A1}}
          - name: asic-1
            attributes: {model: {string: A1}}
spec:
  price: "1"
  requirements:
  - {key: karpenter.sh/nodepool, operator: In, values: [overlay]}
`

// testNodeOverlay: a node of a NodePool gets the devices of the NodeOverlay for
// it, beside those of the template for its instance type, as soon as there is one.
func testNodeOverlay(w *world) {
	w.scene("overlay", nodePool{name: "overlay", types: "g4dn.xlarge"})
	w.apply("overlay", oneGPU+podManifest("a", "overlay", "gpu")+nodeOverlay)
	w.running("overlay", 1)
	nodes := w.nodes("overlay")
	require.Len(w, nodes, 1)
	w.eventually(func() string {
		drivers := map[string]int{}
		for _, slice := range w.slicesOf(nodes[0].Name) {
			drivers[slice.Spec.Driver] += len(slice.Spec.Devices)
		}
		if have := fmt.Sprint(drivers); have != "map[asic.example.com:2 gpu.nvidia.com:1]" {
			return "the node has devices " + have
		}
		return ""
	})
}
