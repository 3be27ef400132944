package e2e

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
)

// limit is what kwok-dra may add to the way of a Pod, of 95 in 100, on a machine
// that does nothing else meanwhile. Here the whole cluster, Karpenter and the
// test share the machine, perhaps with others, so a run that takes longer is told
// of, and fails only where it takes ten times as long.
const limit = 300 * time.Millisecond

// testFiftyPods: each of fifty Pods gets a node with a device.
func testFiftyPods(w *world) {
	const count = 50
	w.scene("fifty", nodePool{name: "fifty", types: "g4dn.xlarge"})
	manifests := claimTemplate("gpu", "", request("gpu", "gpu.nvidia.com", 1))
	for i := range count {
		manifests += podManifest(fmt.Sprintf("fifty-%d", i), "fifty", "gpu")
	}
	w.apply("fifty", manifests)
	pods := w.running("fifty", count)
	devices := map[string]bool{}
	for _, pod := range pods {
		for _, result := range w.results(&pod)["gpu.nvidia.com"] {
			devices[result.Pool+"/"+result.Device] = true
		}
		w.await(timeline.PodRunning, pod.Name)
	}
	require.Len(w, devices, count, "nobody shares a device")
	require.Len(w, w.nodes("fifty"), count)

	added, err := w.timeline.AddedTo("gpu.nvidia.com", func(pod string) bool { return strings.HasPrefix(pod, "fifty-") })
	require.NoError(w, err)
	require.Len(w, added, count)
	both := timeline.Percentile(0.95, added, timeline.Both)
	w.Logf("kwok-dra added, for %d Pods, median and 95th percentile: publishing %s, %s; preparing %s, %s; both %s, %s (limit %s)", count,
		timeline.Percentile(0.5, added, timeline.Publishing), timeline.Percentile(0.95, added, timeline.Publishing),
		timeline.Percentile(0.5, added, timeline.Preparing), timeline.Percentile(0.95, added, timeline.Preparing),
		timeline.Percentile(0.5, added, timeline.Both), both, limit)
	require.Less(w, both, 10*limit)
}
