package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

const driver = "gpu.example.com"

func gpus(count int) string {
	return fmt.Sprintf(`[{name: gpu, count: %d, attributes: {model: H100, index: {int: "{{ .Index }}"}, uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"}, capacity: {memory: 80Gi}}]`, count)
}

// TestPublish has the stories of slices that share one cluster and sidecar.
func TestPublish(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cluster.Options{})
	h.sidecar()
	for name, test := range map[string]func(*harness){
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.on(t))
		})
	}
}

func testNewNode(h *harness) {
	h.configure("new", template("new", driver, "new", gpus(8)))
	node := h.createNode("new", "new")
	pool := h.published("new", driver, 8)

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

func testNoTemplateMatches(h *harness) {
	h.configure("match", template("match", driver, "match", gpus(8)))
	h.createNode("match", "match")
	h.published("match", driver, 8)
	h.label("match", "kind", "other")
	h.retired("match")
}

func testNotFakeAnyMore(h *harness) {
	h.configure("fake", template("fake", driver, "fake", gpus(8)))
	h.createNode("fake", "fake")
	h.published("fake", driver, 8)
	_, err := h.client.CoreV1().Nodes().Patch(h.Context(), "fake", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"kwok.x-k8s.io/node":null}}}`), metav1.PatchOptions{})
	require.NoError(h, err)
	h.retired("fake")
}

func testThreeHundredDevices(h *harness) {
	h.configure("many", template("many", driver, "many", gpus(300)))
	h.createNode("many", "many")
	pool := h.published("many", driver, 300)
	require.Len(h, pool, 3)
	for _, slice := range pool {
		require.Equal(h, resourcev1.ResourcePool{Name: "many", Generation: 1, ResourceSliceCount: 3}, slice.Spec.Pool)
	}
	claim := h.allocate("many", `device.attributes["`+driver+`"].index >= 140 && device.attributes["`+driver+`"].index < 170`)
	require.Len(h, claim.Status.Allocation.Devices.Results, 30)
}

func testTwoTemplatesOnePool(h *harness) {
	h.configure("one", template("one-b", driver, "one", `[{name: b, count: 2}]`)+template("one-a", driver, "one", `[{name: a, count: 2}]`))
	h.createNode("one", "one")
	pool := h.published("one", driver, 4)
	require.Len(h, pool, 1)
	require.Equal(h, []string{"a-0", "a-1", "b-0", "b-1"}, deviceNames(pool))
}

func testTwoDriversTwoPools(h *harness) {
	h.configure("two", template("two-gpu", driver, "two", gpus(2))+template("two-nic", "nic.example.com", "two", `[{name: nic}]`))
	h.createNode("two", "two")
	h.eventually(patience, func() string { return h.complete("two", map[string]int{driver: 2, "nic.example.com": 1}) })
}

func testPriorityDecides(h *harness) {
	low := template("low", driver, "rank", `[{name: low}]`)
	high := strings.Replace(template("high", driver, "rank", `[{name: high}]`), "spec:", "spec:\n  priority: 5", 1)
	h.configure("rank", low+high)
	h.createNode("rank", "rank")
	require.Equal(h, []string{"high"}, deviceNames(h.published("rank", driver, 1)))
}

func testLongNodeName(h *harness) {
	h.configure("long", template("long", driver, "long", gpus(8)))
	for _, name := range []string{
		strings.Repeat("n", 100),
		"kwok-default-nodepool-x7k2p.silly-name-42." + strings.Repeat("abcdefghi.", 20) + "end",
	} {
		h.createNode(name, "long")
		h.published(name, driver, 8)
	}
}

// testGenerationRises follows the upstream controller: one slice that changes
// keeps the generation, a slice that is added or two that change raise it.
func testGenerationRises(h *harness) {
	configure := func(devices string) { h.configure("generation", template("generation", driver, "generation", devices)) }
	configure(`[{name: a, count: 128}, {name: b, count: 10}]`)
	h.createNode("generation", "generation")
	watcher := h.watchPool("generation")
	watcher.allow(138)
	require.Equal(h, int64(1), generation(h.published("generation", driver, 138)))

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
		watcher.allow(step.count)
		configure(step.devices)
		got := generation(h.published("generation", driver, step.count))
		require.Equal(h, step.generation, got, "devices %s", step.devices)
	}
	watcher.finish()
}

func testSliceDeletedByHand(h *harness) {
	h.configure("deleted", template("deleted", driver, "deleted", gpus(300)))
	h.createNode("deleted", "deleted")
	for _, slice := range h.published("deleted", driver, 300) {
		require.NoError(h, h.client.ResourceV1().ResourceSlices().Delete(h.Context(), slice.Name, metav1.DeleteOptions{}))
		h.eventually(soon, func() string { return h.complete("deleted", map[string]int{driver: 300}) })
	}
}

func testSliceEditedByHand(h *harness) {
	h.configure("edited", template("edited", driver, "edited", gpus(8)))
	h.createNode("edited", "edited")
	before := h.published("edited", driver, 8)[0]
	for _, patch := range []string{
		`[{"op": "replace", "path": "/spec/devices/0/attributes/model/string", "value": "other"}]`,
		`[{"op": "remove", "path": "/spec/devices/7"}]`,
		`[{"op": "replace", "path": "/spec/pool/resourceSliceCount", "value": 2}]`,
		`[{"op": "remove", "path": "/spec/devices"}, {"op": "add", "path": "/spec/sharedCounters", "value": [{"name": "c", "counters": {"memory": {"value": "1Gi"}}}]}]`,
	} {
		h.patchSlice(before.Name, types.JSONPatchType, patch)
		h.eventually(soon, func() string {
			now := h.slicesOf("edited")[0]
			if !sameSpec(now.Spec, before.Spec) {
				return "the slice is not what it was before " + patch
			}
			return ""
		})
	}
}

func testOwnerReferenceRemoved(h *harness) {
	h.configure("owner", template("owner", driver, "owner", gpus(8)))
	h.createNode("owner", "owner")
	before := h.published("owner", driver, 8)[0]
	h.patchSlice(before.Name, types.MergePatchType, `{"metadata": {"ownerReferences": null}}`)
	h.eventually(soon, func() string {
		now := h.slicesOf("owner")[0]
		if len(now.OwnerReferences) != 1 || now.UID != before.UID {
			return "the owner reference is not back"
		}
		return ""
	})
	require.Equal(h, int64(1), generation(h.slicesOf("owner")))
}

func testManagedByLabelRemoved(h *harness) {
	h.configure("label", template("label", driver, "label", gpus(8)))
	h.createNode("label", "label")
	before := h.published("label", driver, 8)[0]
	h.patchSlice(before.Name, types.MergePatchType, `{"metadata": {"labels": null}}`)
	h.eventually(soon, func() string {
		now := h.slicesOf("label")
		if len(now) != 1 || len(now[0].Labels) != 1 || now[0].UID != before.UID {
			return "the label is not back"
		}
		return ""
	})
}

func testOneDriverFails(h *harness) {
	broken := template("broken", "broken.example.com", "broken", `[{name: x, attributes: {zone: "{{ .Node.metadata.labels.zone }}"}}]`)
	h.configure("broken", broken+template("sound", driver, "broken", gpus(1)))
	h.createNode("broken", "broken")
	h.published("broken", driver, 1)
	h.eventually(patience, func() string {
		if h.events("broken", "PublishFailed") == 0 {
			return "no event on the node"
		}
		return ""
	})
	h.label("broken", "zone", "z1")
	h.eventually(soon, func() string { return h.complete("broken", map[string]int{driver: 1, "broken.example.com": 1}) })
	h.label("broken", "zone", nil)
	h.eventually(patience, func() string {
		if h.events("broken", "PublishFailed") < 2 {
			return "no second event on the node"
		}
		return ""
	})
	require.Empty(h, h.complete("broken", map[string]int{driver: 1, "broken.example.com": 1}), "a template that fails must not delete slices")
}
