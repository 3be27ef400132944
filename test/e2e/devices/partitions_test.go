package devices

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// sevenths divides each GPU into seven.
func sevenths(count int) string {
	return fmt.Sprintf(`
  - name: gpu
    count: %d
    attributes: {profile: whole, model: H100, uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"}
    capacity: {memory: 80Gi}
    counters: {memory: 80Gi, multiprocessors: 132}
    partitions:
    - name: mig-1g
      count: 7
      consumes: {memory: 10Gi, multiprocessors: 16}
      attributes: {profile: 1g, parent: {int: "{{ .Index }}"}, number: {int: "{{ .Partition }}"}}
      capacity: {memory: 10Gi}`, count)
}

const (
	whole   = `is.profile == "whole"`
	seventh = `is.profile == "1g"`
)

// testWholeOrPartition allocates a GPU or a partition of it, in both orders.
func testWholeOrPartition(h *harness.H) {
	modelScene(h, "mig-or", "", sevenths(1), 8)
	require.Equal(h, "gpu-0", gets(h, "mig-or", "first", whole))
	getsNone(h, "mig-or", "second", seventh)
	frees(h, "mig-or", "first")
	require.Equal(h, "gpu-0-mig-1g-0", got(h, "mig-or", "second"))
	getsNone(h, "mig-or", "third", whole)
	frees(h, "mig-or", "second")
	require.Equal(h, "gpu-0", got(h, "mig-or", "third"))
}

// testSevenPartitions has all partitions of one GPU in use while the other is
// in use as a whole.
func testSevenPartitions(h *harness.H) {
	modelScene(h, "mig-7", "", sevenths(2), 16)
	require.Equal(h, "gpu-0", gets(h, "mig-7", "whole", whole))
	seen := map[string]bool{}
	for i := range 7 {
		seen[gets(h, "mig-7", fmt.Sprint("pod-", i), seventh)] = true
	}
	require.Len(h, seen, 7)
	for i := range 7 {
		require.Contains(h, seen, fmt.Sprint("gpu-1-mig-1g-", i))
	}
	getsNone(h, "mig-7", "eighth", seventh)
	frees(h, "mig-7", "pod-3")
	require.Regexp(h, `^gpu-1-mig-1g-\d$`, got(h, "mig-7", "eighth"))
}

// placed has partitions that take slots of a GPU, as MIG's do.
const placed = `
  - name: gpu
    attributes: {profile: whole}
    slots: {name: memory-slice, count: 8}
    partitions:
    - {name: 2g, placements: [0, 2, 4], size: 2, attributes: {profile: 2g, start: {int: "{{ .Placement }}"}}}
    - {name: 3g, placements: [0, 4], size: 4, attributes: {profile: 3g, start: {int: "{{ .Placement }}"}}}`

func testPlacements(h *harness.H) {
	const third = `is.profile == "3g"`
	pool := modelScene(h, "slots", "", placed, 6)
	for name, start := range map[string]int64{"gpu-2g-0": 0, "gpu-2g-1": 2, "gpu-2g-2": 4, "gpu-3g-0": 0, "gpu-3g-1": 4} {
		require.Equal(h, start, *harness.DeviceNamed(h, pool, name).Attributes["start"].IntValue, name)
	}
	gets(h, "slots", "first", third)
	gets(h, "slots", "second", third)
	getsNone(h, "slots", "third", third)
	frees(h, "slots", "first")
	got(h, "slots", "third")
	frees(h, "slots", "second")
	frees(h, "slots", "third")

	// Slots 2 and 3 are in the way of one of the two.
	gets(h, "slots", "two", `is.profile == "2g" && is.start == 2`)
	require.Equal(h, "gpu-3g-1", gets(h, "slots", "beside", third))
	getsNone(h, "slots", "over", third)
	getsNone(h, "slots", "whole", whole)
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// testPartitionNames looks at what tells partitions apart, within a node and
// between two nodes.
func testPartitionNames(h *harness.H) {
	pool := modelScene(h, "mig-names", "", sevenths(2), 16)
	h.CreateNode("mig-names-2", "mig-names")
	second := h.Published("mig-names-2", harness.Driver, 16)
	require.Equal(h, harness.DeviceNames(pool), harness.DeviceNames(second), "a node group has the same names on every node")
	uuids := map[string]bool{}
	for _, pool := range [][]resourcev1.ResourceSlice{pool, second} {
		for gpu := range 2 {
			parent := harness.DeviceNamed(h, pool, fmt.Sprint("gpu-", gpu)).Attributes["uuid"].StringValue
			uuids[*parent] = true
			for i := range 7 {
				device := harness.DeviceNamed(h, pool, fmt.Sprintf("gpu-%d-mig-1g-%d", gpu, i))
				require.Equal(h, parent, device.Attributes["parentUUID"].StringValue)
				require.Regexp(h, uuid, *device.Attributes["uuid"].StringValue)
				uuids[*device.Attributes["uuid"].StringValue] = true
				require.Equal(h, "H100", *device.Attributes["model"].StringValue)
				require.Equal(h, []int64{int64(gpu), int64(i)}, []int64{*device.Attributes["parent"].IntValue, *device.Attributes["number"].IntValue})
				memory := device.Capacity["memory"].Value
				require.Equal(h, "10Gi", memory.String())
			}
		}
	}
	require.Len(h, uuids, 2*16)
}

// testPartitionTainted has an annotation taint one partition, which is then not
// allocated.
func testPartitionTainted(h *harness.H) {
	modelScene(h, "mig-taint", "", sevenths(1), 8)
	taint(h, "mig-taint", "gpu-0-mig-1g-0:example.com/xid=94:NoSchedule")
	h.Eventually(harness.Patience, func() string {
		if pool := h.SlicesOf("mig-taint"); len(harness.DeviceNamed(h, pool, "gpu-0-mig-1g-0").Taints) == 0 {
			return "the partition is not tainted"
		}
		return ""
	})
	require.Equal(h, "gpu-0-mig-1g-1", gets(h, "mig-taint", "pod", seventh))
}

// TestModelRestart has a pool of partitions and one that nodes share, on which a
// restart finds nothing to do.
func TestModelRestart(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AllFeatures(cluster.Options{Audit: true}))
	h.Configure("parts", harness.Template("parts", harness.Driver, "parts", sevenths(2)))
	h.Configure("fabric", sharedTemplate("fabric", "parts", "allNodes: true"))
	process := h.Sidecar()
	h.CreateNode("parts-0", "parts")
	h.CreateNode("parts-1", "parts")
	h.Published("parts-0", harness.Driver, 16)
	h.Published("parts-1", harness.Driver, 16)
	sharedPool(h, "fabric", 4)
	require.NoError(t, process.Stop())
	before := h.AllSlices()
	h.NoWrites()
	require.Equal(t, before, h.AllSlices())

	// Nor does another process find other UUIDs when it has to write.
	for _, slice := range before {
		deleteSlice(h, slice.Name)
	}
	h.Sidecar()
	h.Published("parts-0", harness.Driver, 16)
	h.Published("parts-1", harness.Driver, 16)
	sharedPool(h, "fabric", 4)
	after := h.AllSlices()
	require.Len(t, after, len(before))
	for i := range before {
		require.Equal(t, before[i].Spec.Devices, after[i].Spec.Devices, "by name, which tells node and place in the pool")
	}
}
