package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
)

// TestKarpenter has the scenes that share one cluster. Each has NodePools of its
// own, and nodes that only its Pods choose.
func TestKarpenter(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	t.Run("scenes", func(t *testing.T) {
		for name, test := range map[string]func(*world){
			"TwoDrivers":    testTwoDrivers,
			"NodePools":     testNodePools,
			"MIG":           testMIG,
			"NoSuchShape":   testNoSuchShape,
			"Consolidation": testConsolidation,
			"Drift":         testDrift,
			"NodeOverlay":   testNodeOverlay,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(w.on(t))
			})
		}
	})
	// Alone, for their times count.
	t.Run("PodByPod", func(t *testing.T) { testPodByPod(w.on(t)) })
	t.Run("FiftyPods", func(t *testing.T) { testFiftyPods(w.on(t)) })
}

// testTwoDrivers: a claim for devices of two drivers that are near each other.
func testTwoDrivers(w *world) {
	w.scene("drivers", nodePool{name: "drivers", types: "BM.GPU.MI300X.8, Standard_ND96isr_MI300X_v5"})
	w.apply("drivers", claimTemplate("near", "resource.kubernetes.io/pcieRoot",
		request("gpu", "gpu.amd.com", 1), request("nic", "dra.net", 1, "device.attributes['dra.net'].rdma"))+
		deployment("train", 8, "drivers", "near"))
	pods := w.running("drivers", 8)
	for _, node := range w.nodesWith(pods, "drivers") {
		require.Equal(w, "BM.GPU.MI300X.8", node.Labels[corev1.LabelInstanceTypeStable], "the type that has both")
		w.sameDevices(node.Name)
		require.Equal(w, "dra.net,gpu.amd.com", w.await(timeline.NodeClaimCreated, w.claimOf(node.Name)).Detail)
	}
	for _, pod := range pods {
		results := w.results(&pod)
		require.Len(w, results["gpu.amd.com"], 1)
		require.Len(w, results["dra.net"], 1)
	}
}

// testNodePools: each Pod gets a node of the NodePool that has its devices.
func testNodePools(w *world) {
	w.scene("pools",
		nodePool{name: "gpu-pool", types: "g4dn.xlarge"},
		nodePool{name: "fpga-pool", types: "Standard_NP40s"})
	w.apply("pools", claimTemplate("gpu", "", request("device", "gpu.nvidia.com", 1))+
		claimTemplate("fpga", "", request("device", "fpga.amd.com", 3))+
		podManifest("gpu", "pools", "gpu")+podManifest("fpga", "pools", "fpga"))
	w.running("pools", 2)
	for pod, want := range map[string]struct{ pool, driver string }{
		"gpu":  {"gpu-pool", "gpu.nvidia.com"},
		"fpga": {"fpga-pool", "fpga.amd.com"},
	} {
		node := w.await(timeline.PodBound, pod).Detail
		object, err := w.client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
		require.NoError(w, err)
		require.Equal(w, want.pool, object.Labels[karpenterv1.NodePoolLabelKey])
		require.Equal(w, want.driver, w.slicesOf(node)[0].Spec.Driver)
	}
	require.Len(w, w.nodes("pools"), 2)
}

// testMIG: partitions of one GPU, on nodes that the NodePool's label gives them. One
// node is enough, but Karpenter makes another where it looks at a Pod while the scheduler
// binds it.
func testMIG(w *world) {
	w.needs(36, "partitions are behind a gate")
	w.scene("mig", nodePool{name: "mig", types: "p5.48xlarge", labels: "dra.kwok.x-k8s.io/profile: nvidia-h100-mig"})
	profile := "device.attributes['gpu.nvidia.com'].profile == '%s'"
	w.apply("mig", claimTemplate("same-gpu", "gpu.nvidia.com/parentUUID",
		request("small", "mig.nvidia.com", 2, fmt.Sprintf(profile, "1g.10gb")),
		request("large", "mig.nvidia.com", 1, fmt.Sprintf(profile, "3g.40gb")))+
		deployment("infer", 2, "mig", "same-gpu"))
	pods := w.running("mig", 2)
	for _, node := range w.nodesWith(pods, "mig") {
		w.sameDevices(node.Name)
	}
	for _, pod := range pods {
		parents := w.parents(pod.Spec.NodeName)
		results := w.results(&pod)["gpu.nvidia.com"]
		require.Len(w, results, 3)
		for _, result := range results {
			require.NotEmpty(w, parents[result.Device])
			require.Equal(w, parents[results[0].Device], parents[result.Device])
		}
	}
}

// parents maps the partitions of a node to the UUIDs of their GPUs.
func (w *world) parents(node string) map[string]string {
	w.Helper()
	parents := map[string]string{}
	for _, slice := range w.slicesOf(node) {
		for _, device := range slice.Spec.Devices {
			if parent := device.Attributes["parentUUID"].StringValue; parent != nil {
				parents[device.Name] = *parent
			}
		}
	}
	return parents
}

// testNoSuchShape: Karpenter says that it has no such node, and makes none, while
// it makes one for the Pod beside it.
func testNoSuchShape(w *world) {
	w.scene("shape", nodePool{name: "shape", types: "p5.48xlarge, g4dn.xlarge"})
	w.apply("shape", claimTemplate("nine", "", request("gpus", "gpu.nvidia.com", 9))+
		claimTemplate("large", "", request("gpu", "gpu.nvidia.com", 1, "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('100Gi'))"))+
		podManifest("nine", "shape", "nine")+podManifest("too-large", "shape", "large"))
	for _, pod := range []string{"nine", "too-large"} {
		w.eventually(func() string {
			events, err := w.client.CoreV1().Events("shape").List(w.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod + ",reason=FailedScheduling"})
			require.NoError(w, err)
			if !slices.ContainsFunc(events.Items, func(event corev1.Event) bool { return event.Source.Component == "karpenter" }) {
				return "Karpenter has not said that it cannot schedule Pod " + pod
			}
			return ""
		})
	}
	w.apply("shape", claimTemplate("eight", "", request("gpus", "gpu.nvidia.com", 8))+podManifest("eight", "shape", "eight"))
	w.await(timeline.PodRunning, "eight")
	for _, pod := range w.pods("shape") {
		require.Equal(w, pod.Name == "eight", pod.Spec.NodeName != "", pod.Name)
	}
	require.Len(w, w.nodes("shape"), 1)
	claims, err := w.cluster.Kubectl(w.Context(), "get", "nodeclaims", "-l", "karpenter.sh/nodepool=shape", "-o", "name")
	require.NoError(w, err)
	require.Len(w, strings.Fields(claims), 1)
}

// testConsolidation: two nodes are half full of claims in use, and Karpenter
// moves the Pods of one to the devices that are free on the other.
func testConsolidation(w *world) {
	w.scene("half", nodePool{name: "half", types: "p5.48xlarge", consolidates: true})
	w.apply("half", claimTemplate("four", "", request("gpus", "gpu.nvidia.com", 4))+deployment("first", 2, "half", "four"))
	w.running("half", 2)
	w.apply("half", deployment("second", 2, "half", "four"))
	w.running("half", 4)
	var before []corev1.Node
	w.eventually(func() string {
		if before = w.nodes("half"); len(before) != 2 {
			return fmt.Sprintf("there are %d nodes, not 2", len(before))
		}
		return ""
	})
	w.running("half", 4)
	w.apply("half", deployment("first", 1, "half", "four")+deployment("second", 1, "half", "four"))

	var after []corev1.Node
	w.eventually(func() string {
		if after = w.nodes("half"); len(after) != 1 {
			return fmt.Sprintf("there are %d nodes", len(after))
		}
		return ""
	})
	pods := w.running("half", 2)
	devices := map[string]bool{}
	for _, pod := range pods {
		require.Equal(w, after[0].Name, pod.Spec.NodeName)
		for _, result := range w.results(&pod)["gpu.nvidia.com"] {
			require.Equal(w, after[0].Name, result.Pool)
			devices[result.Device] = true
		}
	}
	require.Len(w, devices, 8, "nobody shares a device")
	for _, node := range before {
		if node.Name != after[0].Name {
			w.await(timeline.SlicesGone, node.Name)
		}
	}
}

// testDrift: a NodePool's nodes are replaced while their devices are in use.
func testDrift(w *world) {
	pool := nodePool{name: "drift", types: "p5.48xlarge"}
	w.scene("drift", pool)
	w.apply("drift", claimTemplate("eight", "", request("gpus", "gpu.nvidia.com", 8))+deployment("train", 1, "drift", "eight"))
	old := w.running("drift", 1)[0].Spec.NodeName

	pool.annotations = `image: "new"`
	w.apply("drift", pool.manifest("drift"))
	w.await(timeline.NodeGone, old)
	w.await(timeline.SlicesGone, old)
	pod := w.running("drift", 1)[0]
	require.NotEqual(w, old, pod.Spec.NodeName)
	require.Len(w, w.results(&pod)["gpu.nvidia.com"], 8)
	nodes := w.nodes("drift")
	require.Len(w, nodes, 1)
	require.Equal(w, "new", nodes[0].Annotations["image"])
	w.sameDevices(nodes[0].Name)
	require.True(w, slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	}))
}
