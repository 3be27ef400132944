package devices

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestAlpha has what is off by default in every release: the sidecar publishes
// it, and the scheduler obeys.
func TestAlpha(t *testing.T) {
	t.Parallel()
	if minor := harness.KubernetesMinor(); minor < 36 {
		t.Skipf("Kubernetes 1.%d: has no lists in attributes, nor what came after them", minor)
	}
	options := harness.EveryFeature()
	options.Config = append(harness.FastStages(t), harness.StageFiles(t, "node/features")...)
	h := harness.New(t, options)
	h.Sidecar()
	for name, test := range map[string]func(*harness.H){
		"ListAttributes":           testListAttributes,
		"ListsMatch":               testListsMatch,
		"NodeAllocatableResources": testNodeAllocatableResources,
		"CompatibilityGroups":      testCompatibilityGroups,
		"SkipNodeOperations":       testSkipNodeOperations,
		"DeclaredFeatures":         testDeclaredFeatures,
		"FractionalCapacity":       testFractionalCapacity,
		"DerivedAttributes":        testDerivedAttributes,
		"PartitionType":            testPartitionType,
		"PoolStatus":               testPoolStatus,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.On(t))
		})
	}
}

func testListAttributes(h *harness.H) {
	pool := modelScene(h, "lists", "", `[{name: gpu, count: 65, attributes: {numa: [0, 1], roots: {strings: [pci0, "pci{{ .Index }}"]}, flags: [true, false], firmware: {versions: [1.2.3]}}}]`, 65)
	require.Len(h, pool, 2, "64 devices in a slice with lists")
	attributes := harness.DeviceNamed(h, pool, "gpu-7").Attributes
	require.Equal(h, []int64{0, 1}, attributes["numa"].IntValues)
	require.Equal(h, []string{"pci0", "pci7"}, attributes["roots"].StringValues)
	require.Equal(h, []bool{true, false}, attributes["flags"].BoolValues)
	require.Equal(h, []string{"1.2.3"}, attributes["firmware"].VersionValues)
}

// testListsMatch has a claim for two devices that have an element in common.
func testListsMatch(h *harness.H) {
	h.Needs(37, "the scheduler does not know lists in matchAttribute")
	modelScene(h, "match", "", `
  - {name: gpu, attributes: {profile: gpu, roots: [a, b]}}
  - {name: far, attributes: {profile: nic, roots: [c]}}
  - {name: near, attributes: {profile: nic, roots: [b, c]}}`, 3)
	spec := selecting("match", harness.Driver, `is.profile == "gpu"`)
	other := selecting("match", harness.Driver, `is.profile == "nic"`).Devices.Requests[0]
	other.Name = "nic"
	spec.Devices.Requests = append(spec.Devices.Requests, other)
	spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName(harness.Driver + "/roots"))}}
	h.CreateClaim("match", "pair", spec)
	h.CreatePod("match", harness.NewPod("pair", "match", "pair"))
	h.Running("match", "pair")
	var got []string
	for _, entry := range h.Entries("match", "pair", 2).Status.Devices {
		got = append(got, entry.Device)
	}
	require.ElementsMatch(h, []string{"gpu", "near"}, got)
}

// testNodeAllocatableResources has devices that stand for the node's own
// processors: who claims them leaves less for others.
func testNodeAllocatableResources(h *harness.H) {
	h.Needs(37, "the field has another name")
	h.Configure("cpus", harness.Template("cpus", harness.Driver, "cpus", `[{name: socket, count: 2, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "3"}}}}]`))
	hasKubelet(h, "cpus-old", "cpus", "v1.36.3", nil)
	h.Eventually(harness.Patience, func() string {
		if messages := h.Messages("", "cpus-old", "PublishFailed"); !strings.Contains(messages, "does not support DRANodeAllocatableResources") {
			return "no event says that the node has to declare the feature: " + messages
		}
		return ""
	})
	hasKubelet(h, "cpus", "cpus", "v1.37.2", corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10"),
	})
	h.Published("cpus", harness.Driver, 2)
	h.Namespace("cpus", harness.Driver)
	h.CreatePod("cpus", onHost("claims", "cpus", "cpus", harness.FromTemplate))
	h.Running("cpus", "claims")
	requests := func(name, cpu string) {
		pod := onHost(name, "cpus", "cpus")
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		h.CreatePod("cpus", pod)
	}
	requests("two", "2")
	h.Unschedulable("cpus", "two")
	h.CreatePod("cpus", onHost("claims-too", "cpus", "cpus", harness.FromTemplate))
	h.Unschedulable("cpus", "claims-too")
	requests("one", "1")
	h.Running("cpus", "one")
}

// hasKubelet creates a node with a kubelet of a version, and the label host=<name>.
func hasKubelet(h *harness.H, name, kind, version string, resources corev1.ResourceList) {
	h.Helper()
	node := harness.FakeNode(name, kind)
	node.Labels["host"] = name
	node.Status.NodeInfo.KubeletVersion = version
	node.Status.Capacity, node.Status.Allocatable = resources, resources
	_, err := h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
}

// testDeclaredFeatures: a node declares the features of its kubelet's version.
func testDeclaredFeatures(h *harness.H) {
	hasKubelet(h, "declares", "declares", "v1.37.2", nil)
	hasKubelet(h, "declares-none", "declares", "v1.36.3", nil)
	h.NodeCondition("declares", v1alpha1.FeaturesDeclared, corev1.ConditionTrue)
	h.NodeReady("declares-none", corev1.ConditionTrue)
	for name, want := range map[string][]string{"declares": {"DRANodeAllocatableResources", "DRAOptionalNodeOperations"}, "declares-none": nil} {
		node, err := h.Client.CoreV1().Nodes().Get(h.Context(), name, metav1.GetOptions{})
		require.NoError(h, err)
		require.Equal(h, want, node.Status.DeclaredFeatures, name)
	}
}

// testCompatibilityGroups has devices of one counter set that may be in use at a
// time only where they have a group in common.
func testCompatibilityGroups(h *harness.H) {
	h.Needs(37, "has no compatibility groups")
	modelScene(h, "groups", `sharedCounters: [{name: board, counters: {lanes: {value: "8"}}}]`, `
  - {name: red, attributes: {profile: red}, consumesCounters: [{counterSet: board, counters: {lanes: {value: "1"}}, compatibilityGroups: [red]}]}
  - {name: both, attributes: {profile: both}, consumesCounters: [{counterSet: board, counters: {lanes: {value: "1"}}, compatibilityGroups: [red, blue]}]}
  - {name: blue, attributes: {profile: blue}, consumesCounters: [{counterSet: board, counters: {lanes: {value: "1"}}, compatibilityGroups: [blue]}]}`, 3)
	gets(h, "groups", "red", `is.profile == "red"`)
	getsNone(h, "groups", "blue", `is.profile == "blue"`)
	gets(h, "groups", "both", `is.profile == "both"`)
	frees(h, "groups", "red")
	got(h, "groups", "blue")
}

// testSkipNodeOperations has devices that nothing is prepared of. Only nodes
// that know of it may have them.
func testSkipNodeOperations(h *harness.H) {
	h.Needs(37, "knows no driver that is not asked to prepare")
	pool := modelScene(h, "skips", `skipNodeOperations: ["*"]`, harness.GPUs(8), 8)
	require.Equal(h, []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll}, pool[0].Spec.SkipNodeOperations)
	hasKubelet(h, "skips-old", "skips", "v1.36.3", nil)
	h.Published("skips-old", harness.Driver, 8)
	h.CreatePod("skips", onHost("old", "skips-old", "skips", harness.FromTemplate))
	h.Unschedulable("skips", "old")
	h.CreatePod("skips", harness.NewPod("pod", "skips", harness.FromTemplate))
	require.True(h, harness.IsReady(h.Running("skips", "pod")))
	claim := h.ClaimOf("skips", "pod")
	require.NotEmpty(h, claim.Status.Allocation.Devices.Results[0].SkipNodeOperations)
	require.Empty(h, claim.Status.Devices)
}

// testPartitionType has slices say which attribute tells partitions apart: those
// with devices that consume counters, and no others.
func testPartitionType(h *harness.H) {
	h.Needs(37, "knows no types of partitions")
	pool := modelScene(h, "types", "partitionTypeAttribute: "+harness.Driver+"/profile\n  slices: [{devices: [gpu]}, {devices: [nic]}]",
		sevenths(1)+"\n  - {name: nic, attributes: {profile: nic}}", 9)
	require.Len(h, pool, 3)
	for _, slice := range pool {
		partitions := len(slice.Spec.Devices) > 0 && len(slice.Spec.Devices[0].ConsumesCounters) > 0
		require.Equal(h, partitions, slice.Spec.PartitionTypeAttribute != nil, slice.Name)
	}
	gets(h, "types", "part", seventh)
	gets(h, "types", "nic", `is.profile == "nic"`)
}

// testFractionalCapacity has shares of a device that are counted in thousandths.
func testFractionalCapacity(h *harness.H) {
	h.Needs(37, "rounds the steps of a capacity up to integers")
	modelScene(h, "fractions", "", `[{name: gpu, allowMultipleAllocations: true, capacity: {cores: {value: "2", requestPolicy: {default: 500m, validRange: {min: 500m, step: 250m}}}}}]`, 1)
	for name, want := range map[string]string{"600m": "750m", "1": "1"} {
		spec := harness.ClaimSpec("fractions")
		spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"cores": resource.MustParse(name)},
		}
		h.CreateClaim("fractions", "of-"+name, spec)
		h.CreatePod("fractions", harness.NewPod("of-"+name, "fractions", "of-"+name))
		h.Running("fractions", "of-"+name)
		consumed := h.Claim("fractions", "of-"+name).Status.Allocation.Devices.Results[0].ConsumedCapacity["cores"]
		require.Equal(h, want, consumed.String())
	}
	h.CreateClaim("fractions", "default", harness.ClaimSpec("fractions"))
	h.CreatePod("fractions", harness.NewPod("default", "fractions", "default"))
	h.Unschedulable("fractions", "default")
}

// testDerivedAttributes has a claim for two devices that have in common what the claim computes of them.
func testDerivedAttributes(h *harness.H) {
	h.Needs(37, "has no derived attributes")
	modelScene(h, "derived", "", `[{name: gpu, count: 4, attributes: {index: {int: "{{ .Index }}"}}}]`, 4)
	spec := harness.ClaimSpec("derived")
	spec.Devices.Requests[0].Exactly.Count = 2
	spec.Devices.Requests[0].Exactly.DerivedAttributes = []resourcev1.DeviceDerivedAttribute{{
		Name: "derived/pair", Expression: fmt.Sprintf("(device.attributes[%q].index + 1) / 2", harness.Driver),
	}}
	spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName("derived/pair"))}}
	h.CreateClaim("derived", "pair", spec)
	h.CreatePod("derived", harness.NewPod("pair", "derived", "pair"))
	h.Running("derived", "pair")
	var got []string
	for _, entry := range h.Entries("derived", "pair", 2).Status.Devices {
		got = append(got, entry.Device)
	}
	require.ElementsMatch(h, []string{"gpu-1", "gpu-2"}, got)
}
