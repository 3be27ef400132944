package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAlpha has what is off by default in every release: the sidecar publishes
// it, and the scheduler obeys.
func TestAlpha(t *testing.T) {
	t.Parallel()
	if minor := kubernetesMinor(); minor < 36 {
		t.Skipf("Kubernetes 1.%d: has no lists in attributes, nor what came after them", minor)
	}
	options := everyFeature()
	options.Config = fastStages(t)
	h := newHarness(t, options)
	h.sidecar()
	for name, test := range map[string]func(*harness){
		"ListAttributes":           testListAttributes,
		"ListsMatch":               testListsMatch,
		"NodeAllocatableResources": testNodeAllocatableResources,
		"CompatibilityGroups":      testCompatibilityGroups,
		"SkipNodeOperations":       testSkipNodeOperations,
		"PartitionType":            testPartitionType,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

func testListAttributes(h *harness) {
	pool := h.modelScene("lists", "", `[{name: gpu, count: 65, attributes: {numa: [0, 1], roots: {strings: [pci0, "pci{{ .Index }}"]}, flags: [true, false], firmware: {versions: [1.2.3]}}}]`, 65)
	require.Len(h, pool, 2, "64 devices in a slice with lists")
	attributes := deviceNamed(h, pool, "gpu-7").Attributes
	require.Equal(h, []int64{0, 1}, attributes["numa"].IntValues)
	require.Equal(h, []string{"pci0", "pci7"}, attributes["roots"].StringValues)
	require.Equal(h, []bool{true, false}, attributes["flags"].BoolValues)
	require.Equal(h, []string{"1.2.3"}, attributes["firmware"].VersionValues)
}

// testListsMatch has a claim for two devices that have an element in common.
func testListsMatch(h *harness) {
	h.needs(37, "the scheduler does not know lists in matchAttribute")
	h.modelScene("match", "", `
  - {name: gpu, attributes: {profile: gpu, roots: [a, b]}}
  - {name: far, attributes: {profile: nic, roots: [c]}}
  - {name: near, attributes: {profile: nic, roots: [b, c]}}`, 3)
	spec := selecting("match", driver, `is.profile == "gpu"`)
	other := selecting("match", driver, `is.profile == "nic"`).Devices.Requests[0]
	other.Name = "nic"
	spec.Devices.Requests = append(spec.Devices.Requests, other)
	spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName(driver + "/roots"))}}
	h.createClaim("match", "pair", spec)
	h.createPod("match", newPod("pair", "match", "pair"))
	h.running("match", "pair")
	var got []string
	for _, entry := range h.entries("match", "pair", 2).Status.Devices {
		got = append(got, entry.Device)
	}
	require.ElementsMatch(h, []string{"gpu", "near"}, got)
}

// testNodeAllocatableResources has devices that stand for the node's own
// processors: who claims them leaves less for others.
func testNodeAllocatableResources(h *harness) {
	h.needs(37, "the field has another name")
	h.configure("cpus", template("cpus", driver, "cpus", `[{name: socket, count: 2, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "3"}}}}]`))
	h.createNode("cpus-old", "cpus")
	h.eventually(patience, func() string {
		if messages := h.messages("", "cpus-old", "PublishFailed"); !strings.Contains(messages, "does not support DRANodeAllocatableResources") {
			return "no event says that the node has to declare the feature: " + messages
		}
		return ""
	})
	node := fakeNode("cpus", "cpus")
	node.Labels["host"] = "cpus"
	node.Status.DeclaredFeatures = []string{"DRANodeAllocatableResources"}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10"),
	}
	node.Status.Capacity = node.Status.Allocatable
	_, err := h.client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
	h.published("cpus", driver, 2)
	h.namespace("cpus", driver)
	h.createPod("cpus", onHost("claims", "cpus", "cpus", fromTemplate))
	h.running("cpus", "claims")
	requests := func(name, cpu string) {
		pod := onHost(name, "cpus", "cpus")
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		h.createPod("cpus", pod)
	}
	requests("two", "2")
	h.unschedulable("cpus", "two")
	h.createPod("cpus", onHost("claims-too", "cpus", "cpus", fromTemplate))
	h.unschedulable("cpus", "claims-too")
	requests("one", "1")
	h.running("cpus", "one")
}

// testCompatibilityGroups has devices of one counter set that may be in use at a
// time only where they have a group in common.
func testCompatibilityGroups(h *harness) {
	h.needs(37, "has no compatibility groups")
	h.modelScene("groups", `sharedCounters: [{name: board, counters: {lanes: {value: "8"}}}]`, `
  - {name: red, attributes: {profile: red}, consumesCounters: [{counterSet: board, counters: {lanes: {value: "1"}}, compatibilityGroups: [red]}]}
  - {name: both, attributes: {profile: both}, consumesCounters: [{counterSet: board, counters: {lanes: {value: "1"}}, compatibilityGroups: [red, blue]}]}
  - {name: blue, attributes: {profile: blue}, consumesCounters: [{counterSet: board, counters: {lanes: {value: "1"}}, compatibilityGroups: [blue]}]}`, 3)
	h.gets("groups", "red", `is.profile == "red"`)
	h.getsNone("groups", "blue", `is.profile == "blue"`)
	h.gets("groups", "both", `is.profile == "both"`)
	h.frees("groups", "red")
	h.got("groups", "blue")
}

// testSkipNodeOperations has devices that nothing is prepared of. Only nodes
// that know of it may have them.
func testSkipNodeOperations(h *harness) {
	h.needs(37, "knows no driver that is not asked to prepare")
	pool := h.modelScene("skips", `skipNodeOperations: ["*"]`, gpus(8), 8)
	require.Equal(h, []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll}, pool[0].Spec.SkipNodeOperations)
	h.createPod("skips", newPod("early", "skips", fromTemplate))
	h.unschedulable("skips", "early")
	_, err := h.client.CoreV1().Nodes().Patch(h.Context(), "skips", types.MergePatchType,
		[]byte(`{"status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}}`), metav1.PatchOptions{}, "status")
	require.NoError(h, err)
	h.createPod("skips", newPod("pod", "skips", fromTemplate))
	require.True(h, isReady(h.running("skips", "pod")))
	claim := h.claimOf("skips", "pod")
	require.NotEmpty(h, claim.Status.Allocation.Devices.Results[0].SkipNodeOperations)
	require.Empty(h, claim.Status.Devices)
}

// testPartitionType has slices say which attribute tells partitions apart: those
// with devices that consume counters, and no others.
func testPartitionType(h *harness) {
	h.needs(37, "knows no types of partitions")
	pool := h.modelScene("types", "partitionTypeAttribute: "+driver+"/profile\n  slices: [{devices: [gpu]}, {devices: [nic]}]",
		sevenths(1)+"\n  - {name: nic, attributes: {profile: nic}}", 9)
	require.Len(h, pool, 3)
	for _, slice := range pool {
		partitions := len(slice.Spec.Devices) > 0 && len(slice.Spec.Devices[0].ConsumesCounters) > 0
		require.Equal(h, partitions, slice.Spec.PartitionTypeAttribute != nil, slice.Name)
	}
	h.gets("types", "part", seventh)
	h.gets("types", "nic", `is.profile == "nic"`)
}
