package e2e

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
)

// TestClosedLoop goes from a Pod that claims devices which no node has to a
// cluster without nodes again, and nobody does anything but to create and to
// delete the Pod. Karpenter itself still runs on kwok 0.6.
func TestClosedLoop(t *testing.T) {
	for _, version := range []string{"", "0.6.1"} {
		t.Run("kwok "+version, func(t *testing.T) {
			testClosedLoop(newWorld(t, cluster.Options{KwokVersion: version}))
		})
	}
}

// longName makes nodes whose names are as long as Karpenter's get, however few digits
// the number has that Karpenter ends them with.
const longName = "gpus-for-the-long-names-of-the-nodes-of-karpenter"

func testClosedLoop(w *world) {
	w.scene("loop", nodePool{name: longName, types: "p5.48xlarge, g4dn.xlarge, Standard_NP40s", consolidates: true})
	w.apply("loop", claimTemplate("gpus", "", request("gpus", "gpu.nvidia.com", 8))+podManifest("training", "loop", "gpus"))

	bound := w.await(timeline.PodBound, "training")
	node := bound.Detail
	require.Greater(w, len(node), 75, node)
	w.await(timeline.PodRunning, "training")
	ready, complete := w.await(timeline.NodeReady, node), w.await(timeline.PoolComplete, timeline.Pool(node, "gpu.nvidia.com"))
	prepared := w.await(timeline.PodPrepared, "training")
	w.Logf("on the node %s (%d characters) kwok-dra took %s from Ready to a complete pool, and %s from binding to prepared",
		node, len(node), complete.At.Sub(ready.At), prepared.At.Sub(bound.At))
	require.Equal(w, "8 devices of gpu.nvidia.com", complete.Detail)
	require.Equal(w, "p5.48xlarge", w.await(timeline.NodeCreated, node).Detail, "the type that has the devices")
	w.sameDevices(node)
	w.allocatedOn("loop", "training", node, "gpu.nvidia.com", 8)

	claim := w.claimOf(node)
	require.Equal(w, "gpu.nvidia.com", w.await(timeline.NodeClaimCreated, claim).Detail, "Karpenter is to wait for the driver's pools")
	w.await(timeline.NodeClaimInitialized, claim)

	require.NoError(w, w.client.CoreV1().Pods("loop").Delete(w.Context(), "training", metav1.DeleteOptions{}))
	w.await(timeline.PodGone, "training")
	w.await(timeline.NodeGone, node)
	w.await(timeline.SlicesGone, node)
	require.Empty(w, w.nodes("loop"))
	w.eventually(func() string {
		list, err := w.client.ResourceV1().ResourceClaims("loop").List(w.Context(), metav1.ListOptions{})
		require.NoError(w, err)
		if len(list.Items) > 0 {
			return "there is a claim left"
		}
		return ""
	})
}

// claimOf is the name of a node's NodeClaim, which Karpenter's KWOK provider
// makes the node's hostname.
func (w *world) claimOf(node string) string {
	w.Helper()
	object, err := w.client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
	require.NoError(w, err)
	return object.Labels[corev1.LabelHostname]
}

// allocatedOn checks that a Pod has that many devices of a driver, different
// ones, all on its node.
func (w *world) allocatedOn(namespace, pod, node, driver string, count int) {
	w.Helper()
	object, err := w.client.CoreV1().Pods(namespace).Get(w.Context(), pod, metav1.GetOptions{})
	require.NoError(w, err)
	names := map[string]bool{}
	for _, result := range w.results(object)[driver] {
		require.Equal(w, node, result.Pool)
		names[result.Device] = true
	}
	require.Len(w, names, count)
}

// sameDevices checks that a node's slices have the devices that Karpenter was
// told of, but for what identifies the node.
func (w *world) sameDevices(node string) {
	w.Helper()
	object, err := w.client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
	require.NoError(w, err)
	want := map[string]string{}
	for _, slice := range w.told(object) {
		for _, device := range slice.Devices {
			want[slice.Driver.Value()+"/"+device.Name.Value()] = describe(w, device.Attributes, device.Capacity)
		}
	}
	got := map[string]string{}
	for _, slice := range w.slicesOf(node) {
		for _, device := range slice.Spec.Devices {
			got[slice.Spec.Driver+"/"+device.Name] = describe(w, device.Attributes, device.Capacity)
		}
	}
	require.NotEmpty(w, want)
	require.Equal(w, want, got)
}

// identifiers are attributes that differ from node to node.
var identifiers = map[resourcev1.QualifiedName]bool{"uuid": true, "parentUUID": true, "dra.net/ipv4": true, "dra.net/mac": true}

// describe writes what a device has, of identifiers only that it has them.
func describe(w *world, attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity) string {
	attributes = maps.Clone(attributes)
	for name := range attributes {
		if identifiers[name] {
			attributes[name] = resourcev1.DeviceAttribute{}
		}
	}
	text, err := json.Marshal([]any{attributes, capacity})
	require.NoError(w, err)
	return string(text)
}
