package e2e

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fabric is the driver of a pool that nodes share: the pool's name is part of it,
// so that tests that run at the same time do not see each other's devices.
func fabric(name string) string { return name + ".example.com" }

// sharedTemplate is a template of four devices that the nodes of a kind share.
func sharedTemplate(name, kind, sharedWith string, fields ...string) string {
	fields = append(fields, "sharedWith: {"+sharedWith+"}")
	return withSpec(template(name, fabric(name), kind, `[{name: port, count: 4, attributes: {index: {int: "{{ .Index }}"}}}]`), strings.Join(fields, "\n  "))
}

// sharedPool waits for the pool of a shared template.
func (h *harness) sharedPool(name string, devices int) []resourcev1.ResourceSlice {
	h.Helper()
	var pool []resourcev1.ResourceSlice
	h.eventually(patience, func() string {
		if pool = h.slicesBy(fabric(name)); len(pool) == 0 {
			return "no slices of " + name
		}
		return completePool(pool, devices)
	})
	for _, slice := range pool {
		require.Equal(h, name, slice.Spec.Pool.Name)
		require.Empty(h, slice.OwnerReferences, "it belongs to no node")
		require.Nil(h, slice.Spec.NodeName)
	}
	return pool
}

func (h *harness) sharedPoolGone(name string) {
	h.Helper()
	h.eventually(patience, func() string {
		if n := len(h.slicesBy(fabric(name))); n > 0 {
			return fmt.Sprintf("%s has %d slices, want none", name, n)
		}
		return ""
	})
}

func (h *harness) deleteSlice(name string) {
	h.Helper()
	require.NoError(h, h.client.ResourceV1().ResourceSlices().Delete(h.Context(), name, metav1.DeleteOptions{}))
}

// looked has the sidecar prove, by a new node's pool, that it has seen what was
// done before.
func (h *harness) looked(name string) {
	h.Helper()
	h.configure("looked-"+name, template("looked-"+name, driver, "looked-"+name, gpus(1)))
	h.createNode("looked-"+name, "looked-"+name)
	h.published("looked-"+name, driver, 1)
}

// testAllNodes has one pool for all nodes, which comes with the first fake node
// and goes with the last.
func testAllNodes(h *harness) {
	h.configure("fabric", sharedTemplate("fabric", "fabric", "allNodes: true", `publishWhen: {matchLabels: {up: "yes"}}`))
	h.createNode("fabric-0", "fabric")
	h.createNode("fabric-1", "fabric")
	h.looked("fabric")
	require.Empty(h, h.slicesBy(fabric("fabric")), "no node lets it be published")

	h.label("fabric-0", "up", "yes")
	before := h.sharedPool("fabric", 4)
	require.Len(h, before, 1)
	require.True(h, *before[0].Spec.AllNodes)
	require.Equal(h, resourcev1.ResourcePool{Name: "fabric", Generation: 1, ResourceSliceCount: 1}, before[0].Spec.Pool)

	h.label("fabric-1", "up", "yes")
	h.label("fabric-0", "up", nil)
	h.createNode("fabric-2", "fabric")
	h.deleteNode("fabric-0")
	h.deleteNode("fabric-2")
	h.looked("fabric-again")
	require.Equal(h, before, h.slicesBy(fabric("fabric")), "one pool, whatever the number of nodes")

	h.deleteNode("fabric-1")
	h.sharedPoolGone("fabric")
	h.createNode("fabric-0", "fabric")
	h.label("fabric-0", "up", "yes")
	require.Equal(h, int64(1), generation(h.sharedPool("fabric", 4)))
	h.configure("fabric", "")
	h.sharedPoolGone("fabric")
}

// hostNode creates a node of a kind, which Pods of onHost can choose.
func (h *harness) hostNode(name, kind string, labels ...string) {
	h.Helper()
	node := fakeNode(name, kind)
	node.Labels["host"] = name
	for i := 0; i < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	_, err := h.client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
}

func onHost(name, host, namespace string, claims ...string) *corev1.Pod {
	pod := newPod(name, namespace, claims...)
	pod.Spec.NodeSelector = map[string]string{"host": host}
	return pod
}

// testAllNodesShareAClaim has Pods on two nodes use one device at a time. On a
// third node, which the template does not select, the driver does not run.
func testAllNodesShareAClaim(h *harness) {
	h.configure("attached", sharedTemplate("attached", "attached", "allNodes: true", `claimStatus: {data: {port: "{{ .Device.name }}"}}`))
	h.hostNode("attached-0", "attached")
	h.hostNode("attached-1", "attached")
	h.hostNode("attached-2", "other")
	h.sharedPool("attached", 4)
	h.namespace("attached", fabric("attached"))
	h.createClaim("attached", "one", claimSpec("attached"))
	h.createPod("attached", onHost("first", "attached-0", "attached", "one"))
	require.True(h, isReady(h.running("attached", "first")))
	entry := h.entries("attached", "one", 1).Status.Devices[0]
	require.Equal(h, "attached", entry.Pool)
	require.JSONEq(h, fmt.Sprintf(`{"port": %q}`, entry.Device), string(entry.Data.Raw))

	h.createPod("attached", onHost("second", "attached-1", "attached", "one"))
	require.True(h, isReady(h.running("attached", "second")))
	require.Len(h, h.claim("attached", "one").Status.Devices, 1)
	h.createPod("attached", onHost("third", "attached-2", "attached", "one"))
	require.Contains(h, h.failedPrepare("attached", "third").Message, "DRA driver "+fabric("attached")+" is not registered")
	h.deletePod("attached", "third", 0)
	h.deletePod("attached", "first", 0)
	h.gone("attached", "first")
	settled(h)
	h.entries("attached", "one", 1)
	h.deletePod("attached", "second", 0)
	h.entries("attached", "one", 0)
}

// testSelectedNodes has a pool for the nodes of a rack.
func testSelectedNodes(h *harness) {
	const rack = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [r1]}]}]}`
	h.configure("rack", sharedTemplate("rack", "rack", rack))
	h.hostNode("rack-0", "rack", "rack", "r1")
	h.hostNode("rack-1", "rack", "rack", "r2")
	pool := h.sharedPool("rack", 4)
	require.Len(h, pool, 1)
	require.Equal(h, "rack", pool[0].Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key)
	h.namespace("rack", fabric("rack"))
	h.createPod("rack", onHost("outside", "rack-1", "rack", fromTemplate))
	h.unschedulable("rack", "outside")
	h.createPod("rack", onHost("inside", "rack-0", "rack", fromTemplate))
	require.True(h, isReady(h.running("rack", "inside")))
	require.Len(h, h.claimOf("rack", "inside").Status.Devices, 1)

	// The slice's selector may change as any other field.
	h.configure("rack", sharedTemplate("rack", "rack", strings.Replace(rack, "[r1]", "[r1, r2]", 1)))
	require.True(h, isReady(h.running("rack", "outside")))
}

// testPerDeviceNodeSelection has a pool whose devices say for themselves which
// nodes they are for.
func testPerDeviceNodeSelection(h *harness) {
	const devices = `[
    {name: local, count: 2, attributes: {profile: local, index: {int: "{{ .Index }}"}}, nodeName: "each-{{ .Index }}"},
    {name: racked, attributes: {profile: racked}, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [each]}]}]}},
    {name: any, attributes: {profile: any}, allNodes: true}]`
	h.configure("each", withSpec(template("each", fabric("each"), "each", devices), "sharedWith: {perDeviceNodeSelection: true}"))
	h.hostNode("each-0", "each")
	h.hostNode("each-1", "each", "rack", "each")
	pool := h.sharedPool("each", 4)
	require.True(h, *pool[0].Spec.PerDeviceNodeSelection)
	require.Equal(h, "each-1", *deviceNamed(h, pool, "local-1").NodeName)
	h.namespace("each", fabric("each"))
	asks := func(pod, host, expression string) {
		h.createClaim("each", pod, selecting("each", fabric("each"), expression))
		h.createPod("each", onHost(pod, host, "each", pod))
	}
	asks("own", "each-1", `is.profile == "local"`)
	require.Equal(h, "local-1", h.got("each", "own"))
	asks("rack", "each-1", `is.profile == "racked"`)
	require.Equal(h, "racked", h.got("each", "rack"))
	asks("any", "each-0", `is.profile == "any"`)
	require.Equal(h, "any", h.got("each", "any"))
	asks("others", "each-1", `is.profile == "local" && is.index == 0`)
	h.unschedulable("each", "others")
}

// testSharedNotReady has the only node of a pool become unready: that retires
// nothing.
func testSharedNotReady(h *harness) {
	h.configure("unready", sharedTemplate("unready", "unready", "allNodes: true"))
	h.createNode("unready", "unready")
	before := h.sharedPool("unready", 4)
	h.label("unready", "node-not-ready.stage.kwok.x-k8s.io", "true")
	h.nodeReady("unready", corev1.ConditionFalse)
	h.configure("unready-too", sharedTemplate("unready-too", "unready", "allNodes: true"))
	h.looked("unready")
	require.Equal(h, before, h.slicesBy(fabric("unready")))
	require.Empty(h, h.slicesBy(fabric("unready-too")), "what is new waits for a node that is ready")
	h.label("unready", "node-not-ready.stage.kwok.x-k8s.io", nil)
	h.sharedPool("unready-too", 4)
}

// testSharedRetires has the nodes of a pool retire one by one.
func testSharedRetires(h *harness) {
	h.configure("retiring", sharedTemplate("retiring", "retiring", "allNodes: true", `retireWhen: {matchLabels: {retired: "yes"}}`))
	h.createNode("retiring-0", "retiring")
	h.createNode("retiring-1", "retiring")
	before := h.sharedPool("retiring", 4)
	h.label("retiring-0", "retired", "yes")
	h.looked("retiring")
	require.Equal(h, before, h.slicesBy(fabric("retiring")))
	h.label("retiring-1", "retired", "yes")
	h.sharedPoolGone("retiring")
	h.label("retiring-0", "retired", nil)
	require.Equal(h, int64(1), generation(h.sharedPool("retiring", 4)))
}

func testSharedEditedByHand(h *harness) {
	h.configure("mended", sharedTemplate("mended", "mended", "allNodes: true"))
	h.createNode("mended", "mended")
	before := h.sharedPool("mended", 4)[0]
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:  `[{"op": "remove", "path": "/spec/devices/3"}]`,
		types.MergePatchType: `{"spec": {"allNodes": null, "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}`,
	} {
		h.patchSlice(before.Name, kind, patch)
		h.eventually(soon, func() string {
			if now := h.slicesBy(fabric("mended")); len(now) == 1 && sameSpec(now[0].Spec, before.Spec) {
				return ""
			}
			return "the slice is not what it was before " + patch
		})
	}
	h.deleteSlice(before.Name)
	h.eventually(soon, func() string {
		if now := h.slicesBy(fabric("mended")); len(now) == 1 && now[0].UID != before.UID && sameSpec(now[0].Spec, before.Spec) {
			return ""
		}
		return "the slice is not back"
	})
}
