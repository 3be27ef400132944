// Package publish proves that nodes get their ResourceSlices, and that these follow
// nodes and templates.
package publish

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestPublish has the stories of slices that share one cluster and sidecar. kwok's chaos
// Stage acts on the nodes that have its label.
func TestPublish(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Config: []string{
		harness.KwokFile(t, "kustomize/stage/node/fast/node-initialize.yaml"),
		harness.KwokFile(t, "kustomize/stage/node/chaos/node-not-ready.yaml"),
	}})
	h.Sidecar()
	for name, test := range map[string]func(*harness.H){
		"NewNode":                  testNewNode,
		"NoTemplateMatches":        testNoTemplateMatches,
		"NotFakeAnyMore":           testNotFakeAnyMore,
		"ThreeHundredDevices":      testThreeHundredDevices,
		"TwoTemplatesOnePool":      testTwoTemplatesOnePool,
		"TwoDriversTwoPools":       testTwoDriversTwoPools,
		"PriorityDecides":          testPriorityDecides,
		"LongNodeName":             testLongNodeName,
		"GenerationRises":          testGenerationRises,
		"SliceDeletedByHand":       testSliceDeletedByHand,
		"SliceEditedByHand":        testSliceEditedByHand,
		"OwnerReferenceRemoved":    testOwnerReferenceRemoved,
		"ManagedByLabelRemoved":    testManagedByLabelRemoved,
		"OneDriverFailsOthersGoOn": testOneDriverFails,
		"NotReadyStays":            testNotReadyStays,
		"RetireWhen":               testRetireWhen,
		"PublishWhenOfOneDriver":   testPublishWhen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.On(t))
		})
	}
}

func testNewNode(h *harness.H) {
	h.Configure("new", harness.Template("new", harness.Driver, "new", harness.GPUs(8)))
	node := h.CreateNode("new", "new")
	pool := h.Published("new", harness.Driver, 8)

	require.Len(h, pool, 1)
	require.Equal(h, resourcev1.ResourcePool{Name: "new", Generation: 1, ResourceSliceCount: 1}, pool[0].Spec.Pool)
	require.Equal(h, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "new", UID: node.UID, Controller: new(true)}}, pool[0].OwnerReferences)
	device := pool[0].Spec.Devices[3]
	require.Equal(h, "gpu-3", device.Name)
	require.Equal(h, int64(3), *device.Attributes["index"].IntValue)
	require.Equal(h, "H100", *device.Attributes["model"].StringValue)
	memory := device.Capacity["memory"]
	require.Equal(h, "80Gi", memory.Value.String())
}

func testNoTemplateMatches(h *harness.H) {
	h.Configure("match", harness.Template("match", harness.Driver, "match", harness.GPUs(8)))
	h.CreateNode("match", "match")
	h.Published("match", harness.Driver, 8)
	h.Label("match", "kind", "other")
	h.Retired("match")
}

func testNotFakeAnyMore(h *harness.H) {
	h.Configure("fake", harness.Template("fake", harness.Driver, "fake", harness.GPUs(8)))
	h.CreateNode("fake", "fake")
	h.Published("fake", harness.Driver, 8)
	_, err := h.Client.CoreV1().Nodes().Patch(h.Context(), "fake", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"kwok.x-k8s.io/node":null}}}`), metav1.PatchOptions{})
	require.NoError(h, err)
	h.Retired("fake")
}

func testThreeHundredDevices(h *harness.H) {
	h.Configure("many", harness.Template("many", harness.Driver, "many", harness.GPUs(300)))
	h.CreateNode("many", "many")
	pool := h.Published("many", harness.Driver, 300)
	require.Len(h, pool, 3)
	for _, slice := range pool {
		require.Equal(h, resourcev1.ResourcePool{Name: "many", Generation: 1, ResourceSliceCount: 3}, slice.Spec.Pool)
	}
	claim := h.Allocate("many", `device.attributes["`+harness.Driver+`"].index >= 140 && device.attributes["`+harness.Driver+`"].index < 170`)
	require.Len(h, claim.Status.Allocation.Devices.Results, 30)
}

func testTwoTemplatesOnePool(h *harness.H) {
	h.Configure("one", harness.Template("one-b", harness.Driver, "one", `[{name: b, count: 2}]`)+harness.Template("one-a", harness.Driver, "one", `[{name: a, count: 2}]`))
	h.CreateNode("one", "one")
	pool := h.Published("one", harness.Driver, 4)
	require.Len(h, pool, 1)
	require.Equal(h, []string{"a-0", "a-1", "b-0", "b-1"}, harness.DeviceNames(pool))
}

func testTwoDriversTwoPools(h *harness.H) {
	h.Configure("two", harness.Template("two-gpu", harness.Driver, "two", harness.GPUs(2))+harness.Template("two-nic", "nic.example.com", "two", `[{name: nic}]`))
	h.CreateNode("two", "two")
	h.Eventually(harness.Patience, func() string { return h.Complete("two", map[string]int{harness.Driver: 2, "nic.example.com": 1}) })
}

func testPriorityDecides(h *harness.H) {
	low := harness.Template("low", harness.Driver, "rank", `[{name: low}]`)
	high := strings.Replace(harness.Template("high", harness.Driver, "rank", `[{name: high}]`), "spec:", "spec:\n  priority: 5", 1)
	h.Configure("rank", low+high)
	h.CreateNode("rank", "rank")
	require.Equal(h, []string{"high"}, harness.DeviceNames(h.Published("rank", harness.Driver, 1)))
}

func testLongNodeName(h *harness.H) {
	h.Configure("long", harness.Template("long", harness.Driver, "long", harness.GPUs(8)))
	for _, name := range []string{
		strings.Repeat("n", 100),
		"kwok-default-nodepool-x7k2p.silly-name-42." + strings.Repeat("abcdefghi.", 20) + "end",
	} {
		h.CreateNode(name, "long")
		h.Published(name, harness.Driver, 8)
	}
}

// testGenerationRises follows the upstream controller: one slice that changes
// keeps the generation, a slice that is added or two that change raise it.
func testGenerationRises(h *harness.H) {
	configure := func(devices string) {
		h.Configure("generation", harness.Template("generation", harness.Driver, "generation", devices))
	}
	configure(`[{name: a, count: 128}, {name: b, count: 10}]`)
	h.CreateNode("generation", "generation")
	watcher := h.WatchPool("generation")
	watcher.Allow(138)
	require.Equal(h, int64(1), harness.Generation(h.Published("generation", harness.Driver, 138)))

	steps := []struct {
		devices    string
		count      int
		generation int64
	}{
		{`[{name: a, count: 128}, {name: b, count: 20}]`, 148, 1},
		{`[{name: c, count: 128}, {name: b, count: 21}]`, 149, 2},
		{`[{name: c, count: 128}, {name: b, count: 172}]`, 300, 3},
		{`[{name: c, count: 128}]`, 128, 3},
		{`[{name: d, count: 127}]`, 127, 3},
	}
	for _, step := range steps {
		watcher.Allow(step.count)
		configure(step.devices)
		got := harness.Generation(h.Published("generation", harness.Driver, step.count))
		require.Equal(h, step.generation, got, "devices %s", step.devices)
	}
	watcher.Finish()
}

func testSliceDeletedByHand(h *harness.H) {
	h.Configure("deleted", harness.Template("deleted", harness.Driver, "deleted", harness.GPUs(300)))
	h.CreateNode("deleted", "deleted")
	for _, slice := range h.Published("deleted", harness.Driver, 300) {
		require.NoError(h, h.Client.ResourceV1().ResourceSlices().Delete(h.Context(), slice.Name, metav1.DeleteOptions{}))
		h.Eventually(harness.Patience, func() string { return h.Complete("deleted", map[string]int{harness.Driver: 300}) })
	}
}

func testSliceEditedByHand(h *harness.H) {
	h.Configure("edited", harness.Template("edited", harness.Driver, "edited", harness.GPUs(8)))
	h.CreateNode("edited", "edited")
	before := h.Published("edited", harness.Driver, 8)[0]
	for _, patch := range []string{
		`[{"op": "replace", "path": "/spec/devices/0/attributes/model/string", "value": "other"}]`,
		`[{"op": "remove", "path": "/spec/devices/7"}]`,
		`[{"op": "replace", "path": "/spec/pool/resourceSliceCount", "value": 2}]`,
		`[{"op": "remove", "path": "/spec/devices"}, {"op": "add", "path": "/spec/sharedCounters", "value": [{"name": "c", "counters": {"memory": {"value": "1Gi"}}}]}]`,
	} {
		h.PatchSlice(before.Name, types.JSONPatchType, patch)
		h.Eventually(harness.Patience, func() string {
			now := h.SlicesOf("edited")[0]
			if !harness.SameSpec(now.Spec, before.Spec) {
				return "the slice is not what it was before " + patch
			}
			return ""
		})
	}
}

func testOwnerReferenceRemoved(h *harness.H) {
	h.Configure("owner", harness.Template("owner", harness.Driver, "owner", harness.GPUs(8)))
	h.CreateNode("owner", "owner")
	before := h.Published("owner", harness.Driver, 8)[0]
	h.PatchSlice(before.Name, types.MergePatchType, `{"metadata": {"ownerReferences": null}}`)
	h.Eventually(harness.Patience, func() string {
		now := h.SlicesOf("owner")[0]
		if len(now.OwnerReferences) != 1 || now.UID != before.UID {
			return "the owner reference is not back"
		}
		return ""
	})
	require.Equal(h, int64(1), harness.Generation(h.SlicesOf("owner")))
}

func testManagedByLabelRemoved(h *harness.H) {
	h.Configure("label", harness.Template("label", harness.Driver, "label", harness.GPUs(8)))
	h.CreateNode("label", "label")
	before := h.Published("label", harness.Driver, 8)[0]
	h.PatchSlice(before.Name, types.MergePatchType, `{"metadata": {"labels": null}}`)
	h.Eventually(harness.Patience, func() string {
		now := h.SlicesOf("label")
		if len(now) != 1 || len(now[0].Labels) != 1 || now[0].UID != before.UID {
			return "the label is not back"
		}
		return ""
	})
}

func testOneDriverFails(h *harness.H) {
	broken := harness.Template("broken", "broken.example.com", "broken", `[{name: x, attributes: {zone: "{{ .Node.metadata.labels.zone }}"}}]`)
	h.Configure("broken", broken+harness.Template("sound", harness.Driver, "broken", harness.GPUs(1)))
	h.CreateNode("broken", "broken")
	h.Published("broken", harness.Driver, 1)
	h.Eventually(harness.Patience, func() string {
		if h.Events("broken", "PublishFailed") == 0 {
			return "no event on the node"
		}
		return ""
	})
	h.Label("broken", "zone", "z1")
	h.Eventually(harness.Patience, func() string { return h.Complete("broken", map[string]int{harness.Driver: 1, "broken.example.com": 1}) })
	h.Label("broken", "zone", nil)
	h.Eventually(harness.Patience, func() string {
		if h.Events("broken", "PublishFailed") < 2 {
			return "no second event on the node"
		}
		return ""
	})
	require.Empty(h, h.Complete("broken", map[string]int{harness.Driver: 1, "broken.example.com": 1}), "a template that fails must not delete slices")
}
