package devices

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// sharedTemplate is a template of four devices that the nodes of a kind share.
func sharedTemplate(name, kind, sharedWith string, fields ...string) string {
	fields = append(fields, "sharedWith: {"+sharedWith+"}")
	return harness.WithSpec(harness.Template(name, harness.Fabric(name), kind, `[{name: port, count: 4, attributes: {index: {int: "{{ .Index }}"}}}]`), strings.Join(fields, "\n  "))
}

// sharedPool waits for the pool of a shared template.
func sharedPool(h *harness.H, name string, devices int) []resourcev1.ResourceSlice {
	h.Helper()
	var pool []resourcev1.ResourceSlice
	h.Eventually(harness.Patience, func() string {
		if pool = h.SlicesBy(harness.Fabric(name)); len(pool) == 0 {
			return "no slices of " + name
		}
		return harness.CompletePool(pool, devices)
	})
	for _, slice := range pool {
		require.Equal(h, name, slice.Spec.Pool.Name)
		require.Empty(h, slice.OwnerReferences, "it belongs to no node")
		require.Nil(h, slice.Spec.NodeName)
	}
	return pool
}

func deleteSlice(h *harness.H, name string) {
	h.Helper()
	require.NoError(h, h.Client.ResourceV1().ResourceSlices().Delete(h.Context(), name, metav1.DeleteOptions{}))
}

// testAllNodes has one pool for all nodes, which comes with the first fake node
// and goes with the last.
func testAllNodes(h *harness.H) {
	h.Configure("fabric", sharedTemplate("fabric", "fabric", "allNodes: true", `publishWhen: {matchLabels: {up: "yes"}}`))
	h.CreateNode("fabric-0", "fabric")
	h.CreateNode("fabric-1", "fabric")
	h.Looked("fabric")
	require.Empty(h, h.SlicesBy(harness.Fabric("fabric")), "no node lets it be published")

	h.Label("fabric-0", "up", "yes")
	before := sharedPool(h, "fabric", 4)
	require.Len(h, before, 1)
	require.True(h, *before[0].Spec.AllNodes)
	require.Equal(h, resourcev1.ResourcePool{Name: "fabric", Generation: 1, ResourceSliceCount: 1}, before[0].Spec.Pool)

	h.Label("fabric-1", "up", "yes")
	h.Label("fabric-0", "up", nil)
	h.CreateNode("fabric-2", "fabric")
	h.DeleteNode("fabric-0")
	h.DeleteNode("fabric-2")
	h.Looked("fabric-again")
	require.Equal(h, before, h.SlicesBy(harness.Fabric("fabric")), "one pool, whatever the number of nodes")

	h.DeleteNode("fabric-1")
	h.SharedPoolGone("fabric")
	h.CreateNode("fabric-0", "fabric")
	h.Label("fabric-0", "up", "yes")
	require.Equal(h, int64(1), harness.Generation(sharedPool(h, "fabric", 4)))
	h.Configure("fabric", "")
	h.SharedPoolGone("fabric")
}

// hostNode creates a node of a kind, which Pods of onHost can choose.
func hostNode(h *harness.H, name, kind string, labels ...string) {
	h.Helper()
	node := harness.FakeNode(name, kind)
	node.Labels["host"] = name
	for i := 0; i < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	_, err := h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
}

func onHost(name, host, namespace string, claims ...string) *corev1.Pod {
	pod := harness.NewPod(name, namespace, claims...)
	pod.Spec.NodeSelector = map[string]string{"host": host}
	return pod
}

// testAllNodesShareAClaim has Pods on two nodes use one device at a time. On a
// third node, which the template does not select, the driver does not run.
func testAllNodesShareAClaim(h *harness.H) {
	h.Configure("attached", sharedTemplate("attached", "attached", "allNodes: true", `claimStatus: {data: {port: "{{ .Device.name }}"}}`))
	hostNode(h, "attached-0", "attached")
	hostNode(h, "attached-1", "attached")
	hostNode(h, "attached-2", "other")
	sharedPool(h, "attached", 4)
	h.Namespace("attached", harness.Fabric("attached"))
	h.CreateClaim("attached", "one", harness.ClaimSpec("attached"))
	h.CreatePod("attached", onHost("first", "attached-0", "attached", "one"))
	require.True(h, harness.IsReady(h.Running("attached", "first")))
	entry := h.Entries("attached", "one", 1).Status.Devices[0]
	require.Equal(h, "attached", entry.Pool)
	require.JSONEq(h, fmt.Sprintf(`{"port": %q}`, entry.Device), string(entry.Data.Raw))

	h.CreatePod("attached", onHost("second", "attached-1", "attached", "one"))
	require.True(h, harness.IsReady(h.Running("attached", "second")))
	require.Len(h, h.Claim("attached", "one").Status.Devices, 1)
	h.CreatePod("attached", onHost("third", "attached-2", "attached", "one"))
	require.Contains(h, h.FailedPrepare("attached", "third").Message, "DRA driver "+harness.Fabric("attached")+" is not registered")
	h.DeletePod("attached", "third", 0)
	h.DeletePod("attached", "first", 0)
	h.Gone("attached", "first")
	harness.Settled(h)
	h.Entries("attached", "one", 1)
	h.DeletePod("attached", "second", 0)
	h.Entries("attached", "one", 0)
}

// testSelectedNodes has a pool for the nodes of a rack.
func testSelectedNodes(h *harness.H) {
	const rack = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [r1]}]}]}`
	h.Configure("rack", sharedTemplate("rack", "rack", rack))
	hostNode(h, "rack-0", "rack", "rack", "r1")
	hostNode(h, "rack-1", "rack", "rack", "r2")
	pool := sharedPool(h, "rack", 4)
	require.Len(h, pool, 1)
	require.Equal(h, "rack", pool[0].Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key)
	h.Namespace("rack", harness.Fabric("rack"))
	h.CreatePod("rack", onHost("outside", "rack-1", "rack", harness.FromTemplate))
	h.Unschedulable("rack", "outside")
	h.CreatePod("rack", onHost("inside", "rack-0", "rack", harness.FromTemplate))
	require.True(h, harness.IsReady(h.Running("rack", "inside")))
	require.Len(h, h.ClaimOf("rack", "inside").Status.Devices, 1)

	// The slice's selector may change as any other field.
	h.Configure("rack", sharedTemplate("rack", "rack", strings.Replace(rack, "[r1]", "[r1, r2]", 1)))
	require.True(h, harness.IsReady(h.Running("rack", "outside")))
}

// testPerDeviceNodeSelection has a pool whose devices say for themselves which
// nodes they are for.
func testPerDeviceNodeSelection(h *harness.H) {
	const devices = `[
    {name: local, count: 2, attributes: {profile: local, index: {int: "{{ .Index }}"}}, nodeName: "each-{{ .Index }}"},
    {name: racked, attributes: {profile: racked}, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [each]}]}]}},
    {name: any, attributes: {profile: any}, allNodes: true}]`
	h.Configure("each", harness.WithSpec(harness.Template("each", harness.Fabric("each"), "each", devices), "sharedWith: {perDeviceNodeSelection: true}"))
	hostNode(h, "each-0", "each")
	hostNode(h, "each-1", "each", "rack", "each")
	pool := sharedPool(h, "each", 4)
	require.True(h, *pool[0].Spec.PerDeviceNodeSelection)
	require.Equal(h, "each-1", *harness.DeviceNamed(h, pool, "local-1").NodeName)
	h.Namespace("each", harness.Fabric("each"))
	asks := func(pod, host, expression string) {
		h.CreateClaim("each", pod, selecting("each", harness.Fabric("each"), expression))
		h.CreatePod("each", onHost(pod, host, "each", pod))
	}
	asks("own", "each-1", `is.profile == "local"`)
	require.Equal(h, "local-1", got(h, "each", "own"))
	asks("rack", "each-1", `is.profile == "racked"`)
	require.Equal(h, "racked", got(h, "each", "rack"))
	asks("any", "each-0", `is.profile == "any"`)
	require.Equal(h, "any", got(h, "each", "any"))
	asks("others", "each-1", `is.profile == "local" && is.index == 0`)
	h.Unschedulable("each", "others")
}

// testSharedNotReady has the only node of a pool become unready: that retires
// nothing.
func testSharedNotReady(h *harness.H) {
	h.Configure("unready", sharedTemplate("unready", "unready", "allNodes: true"))
	h.CreateNode("unready", "unready")
	before := sharedPool(h, "unready", 4)
	h.Label("unready", "node-not-ready.stage.kwok.x-k8s.io", "true")
	h.NodeReady("unready", corev1.ConditionFalse)
	h.Configure("unready-too", sharedTemplate("unready-too", "unready", "allNodes: true"))
	h.Looked("unready")
	require.Equal(h, before, h.SlicesBy(harness.Fabric("unready")))
	require.Empty(h, h.SlicesBy(harness.Fabric("unready-too")), "what is new waits for a node that is ready")
	h.Label("unready", "node-not-ready.stage.kwok.x-k8s.io", nil)
	sharedPool(h, "unready-too", 4)
}

// testSharedRetires has the nodes of a pool retire one by one.
func testSharedRetires(h *harness.H) {
	h.Configure("retiring", sharedTemplate("retiring", "retiring", "allNodes: true", `retireWhen: {matchLabels: {retired: "yes"}}`))
	h.CreateNode("retiring-0", "retiring")
	h.CreateNode("retiring-1", "retiring")
	before := sharedPool(h, "retiring", 4)
	h.Label("retiring-0", "retired", "yes")
	h.Looked("retiring")
	require.Equal(h, before, h.SlicesBy(harness.Fabric("retiring")))
	h.Label("retiring-1", "retired", "yes")
	h.SharedPoolGone("retiring")
	h.Label("retiring-0", "retired", nil)
	require.Equal(h, int64(1), harness.Generation(sharedPool(h, "retiring", 4)))
}

func testSharedEditedByHand(h *harness.H) {
	h.Configure("mended", sharedTemplate("mended", "mended", "allNodes: true"))
	h.CreateNode("mended", "mended")
	before := sharedPool(h, "mended", 4)[0]
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:  `[{"op": "remove", "path": "/spec/devices/3"}]`,
		types.MergePatchType: `{"spec": {"allNodes": null, "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}`,
	} {
		h.PatchSlice(before.Name, kind, patch)
		h.Eventually(harness.Patience, func() string {
			if now := h.SlicesBy(harness.Fabric("mended")); len(now) == 1 && harness.SameSpec(now[0].Spec, before.Spec) {
				return ""
			}
			return "the slice is not what it was before " + patch
		})
	}
	deleteSlice(h, before.Name)
	h.Eventually(harness.Patience, func() string {
		if now := h.SlicesBy(harness.Fabric("mended")); len(now) == 1 && now[0].UID != before.UID && harness.SameSpec(now[0].Spec, before.Spec) {
			return ""
		}
		return "the slice is not back"
	})
}
