package e2e

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// limit is what kwok-dra may add to the way of half of the Pods. It finds work that waits
// for a later event or a timer, and nothing finer: the machine is shared by the whole
// cluster, Karpenter and other tests. `make test-karpenter` prints the figures.
const limit = 5 * time.Second

// testPodByPod: every other second a Pod needs a node with a device. That is how
// long it takes where nothing waits for the CPU.
func testPodByPod(w *world) {
	const count = 20
	w.scene("turn", nodePool{name: "turn", types: "g4dn.xlarge"})
	w.apply("turn", oneGPU)
	stop := w.probe("turn")
	every := time.NewTicker(2 * time.Second)
	defer every.Stop()
	for i := range count {
		w.apply("turn", podManifest(fmt.Sprintf("turn-%d", i), "turn", "gpu"))
		<-every.C
	}
	w.requireLittleAdded("turn", count, stop)
}

// testFiftyPods: each of fifty Pods gets a node with a device.
func testFiftyPods(w *world) {
	const count = 50
	w.scene("fifty", nodePool{name: "fifty", types: "g4dn.xlarge"})
	manifests := oneGPU
	for i := range count {
		manifests += podManifest(fmt.Sprintf("fifty-%d", i), "fifty", "gpu")
	}
	stop := w.probe("fifty")
	w.apply("fifty", manifests)
	w.requireLittleAdded("fifty", count, stop)
}

// oneGPU is what each of the Pods claims.
var oneGPU = claimTemplate("gpu", "", request("gpu", "gpu.nvidia.com", 1))

// requireLittleAdded waits until each of so many Pods runs on a node of its own,
// and prints what kwok-dra added to their way. Probe tells what a write and its
// event took meanwhile.
func (w *world) requireLittleAdded(namespace string, count int, probe func() []time.Duration) {
	w.Helper()
	devices := map[string]bool{}
	for _, pod := range w.running(namespace, count) {
		for _, result := range w.results(&pod)["gpu.nvidia.com"] {
			devices[result.Pool+"/"+result.Device] = true
		}
		w.await(timeline.PodRunning, pod.Name)
	}
	require.Len(w, devices, count, "nobody shares a device")
	require.Len(w, w.nodes(namespace), count)

	added, err := w.timeline.AddedTo("gpu.nvidia.com", func(pod string) bool { return strings.HasPrefix(pod, namespace+"-") })
	require.NoError(w, err)
	require.Len(w, added, count)
	w.Logf("kwok-dra added, for 95 of 100 of %d Pods: publishing %s, preparing %s, both %s; meanwhile a write and its event took %s",
		count, pairs.Quantile(timeline.Publishing(added), 0.95), pairs.Quantile(timeline.Preparing(added), 0.95),
		pairs.Quantile(timeline.Both(added), 0.95), pairs.Quantile(probe(), 0.95))
	require.Less(w, pairs.Quantile(timeline.Both(added), 0.51), limit, "for more than half of the Pods")
}
