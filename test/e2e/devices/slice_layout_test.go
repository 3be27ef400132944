package devices

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// migDevices is how many devices a GPU makes with all that MIG offers for it:
// itself and 26 partitions.
const migDevices = 1 + 7 + 7 + 4 + 3 + 2 + 1 + 2

// mig divides eight GPUs in every way.
const mig = `
  - name: gpu
    count: 8
    attributes: {profile: whole, index: {int: "{{ .Index }}"}, uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"}
    counters: {memory: 80Gi, multiprocessors: 132}
    slots: {name: memory-slice, count: 8}
    partitions:
    - {name: 1g10gb, placements: [0, 1, 2, 3, 4, 5, 6], consumes: {memory: 10Gi, multiprocessors: 16}, attributes: {profile: 1g.10gb}}
    - {name: 1g10gb-me, placements: [0, 1, 2, 3, 4, 5, 6], consumes: {memory: 10Gi, multiprocessors: 16}, attributes: {profile: 1g.10gb.me}}
    - {name: 1g20gb, placements: [0, 2, 4, 6], size: 2, consumes: {memory: 20Gi, multiprocessors: 26}, attributes: {profile: 1g.20gb}}
    - {name: 2g20gb, placements: [0, 2, 4], size: 2, consumes: {memory: 20Gi, multiprocessors: 32}, attributes: {profile: 2g.20gb}}
    - {name: 3g40gb, placements: [0, 4], size: 4, consumes: {memory: 40Gi, multiprocessors: 60}, attributes: {profile: 3g.40gb}}
    - {name: 4g40gb, placements: [0], size: 4, consumes: {memory: 40Gi, multiprocessors: 64}, attributes: {profile: 4g.40gb}}
    - {name: 7g80gb, count: 2, consumes: {memory: 80Gi, multiprocessors: 132}, attributes: {profile: 7g.80gb}}`

// testManyPartitions has more partitions and counters than one slice can hold.
// The scheduler takes the pool, with all that its parts exclude.
func testManyPartitions(h *harness.H) {
	pool := modelScene(h, "mig-all", "", mig, 8*migDevices)
	requireCounterLayout(h, pool, 8)
	require.Equal(h, int64(1), harness.Generation(pool))
	last := `is.profile == "7g.80gb" && is.index == 7`
	require.Equal(h, "gpu-7-7g80gb-0", gets(h, "mig-all", "last", last))
	getsNone(h, "mig-all", "same", last)
	getsNone(h, "mig-all", "part", `is.profile == "1g.10gb" && is.index == 7`)
	require.Equal(h, "gpu-6-1g10gb-me-0", gets(h, "mig-all", "other", `is.profile == "1g.10gb.me" && is.index == 6`))
	require.Equal(h, "gpu-6-3g40gb-1", gets(h, "mig-all", "beside", `is.profile == "3g.40gb" && is.index == 6`))
}

// requireCounterLayout wants counter sets where this Kubernetes has them: up to
// 1.34 beside the devices that consume from them, and later in slices of their
// own, before the devices.
func requireCounterLayout(h *harness.H, pool []resourcev1.ResourceSlice, sets int) {
	h.Helper()
	placed := map[string]int{}
	for i, slice := range pool {
		here := map[string]bool{}
		for _, set := range slice.Spec.SharedCounters {
			placed[set.Name]++
			here[set.Name] = true
		}
		if harness.KubernetesMinor() > 34 {
			require.NotEqual(h, len(slice.Spec.Devices) == 0, len(here) == 0, "slice %d has counter sets or devices", i)
			require.Equal(h, i < (sets+7)/8, len(here) > 0, "counter sets come first")
			continue
		}
		for _, device := range slice.Spec.Devices {
			for _, consumption := range device.ConsumesCounters {
				require.True(h, here[consumption.CounterSet], "%s consumes from %s", device.Name, consumption.CounterSet)
			}
		}
	}
	require.Len(h, placed, sets)
	for name, times := range placed {
		require.Equal(h, 1, times, name)
	}
}

// testFourThousandDevices fills 32 slices.
func testFourThousandDevices(h *harness.H) {
	const count = 4096
	devices := func(model string) string {
		return fmt.Sprintf(`[{name: port, count: %d, attributes: {model: %s, index: {int: "{{ .Index }}"}}}]`, count, model)
	}
	pool := modelScene(h, "ports", "", devices("old"), count)
	require.Len(h, pool, count/resourcev1.ResourceSliceMaxDevices)
	require.Equal(h, int64(1), harness.Generation(pool))
	require.Equal(h, "port-4095", gets(h, "ports", "last", "is.index == 4095"))

	watcher := h.WatchPool("ports")
	watcher.Allow(count)
	h.Configure("ports", harness.Template("ports", harness.Driver, "ports", devices("new")))
	h.Eventually(harness.Patience, func() string {
		pool := h.SlicesOf("ports")
		for _, slice := range pool {
			if model := *slice.Spec.Devices[0].Attributes["model"].StringValue; model != "new" {
				return fmt.Sprintf("slice %s has the model %s", slice.Name, model)
			}
			if slice.Spec.Pool.Generation != 2 {
				return fmt.Sprintf("slice %s has generation %d, want 2", slice.Name, slice.Spec.Pool.Generation)
			}
		}
		return harness.CompletePool(pool, count)
	})
	watcher.Finish()
	require.Equal(h, "port-4094", gets(h, "ports", "next", `is.index == 4094 && is.model == "new"`))
}

// testExplicitSlices has a template say what is in which slice.
func testExplicitSlices(h *harness.H) {
	pool := modelScene(h, "explicit", "slices: [{devices: [gpu-2, nic]}, {devices: [fpga]}, {devices: [gpu-0, gpu-1]}]",
		`[{name: gpu, count: 3, attributes: {profile: gpu}}, {name: nic, attributes: {profile: nic}}, {name: fpga, count: 2, attributes: {profile: fpga}}]`, 6)
	var got []string
	for _, slice := range pool {
		got = append(got, strings.Join(harness.DeviceNames([]resourcev1.ResourceSlice{slice}), " "))
	}
	require.Equal(h, []string{"gpu-2 nic", "fpga-0 fpga-1", "gpu-0 gpu-1"}, got)
	require.Equal(h, "fpga-0", gets(h, "explicit", "pod", `is.profile == "fpga"`))

	// A device moves from one slice to another, and the pool is never wrong.
	watcher := h.WatchPool("explicit")
	watcher.Allow(6)
	moved := harness.WithSpec(harness.Template("explicit", harness.Driver, "explicit",
		`[{name: gpu, count: 3, attributes: {profile: gpu}}, {name: nic, attributes: {profile: nic}}, {name: fpga, count: 2, attributes: {profile: fpga}}]`),
		"slices: [{devices: [gpu-2, nic, gpu-1]}, {devices: [fpga]}, {devices: [gpu-0]}]")
	h.Configure("explicit", moved)
	h.Eventually(harness.Patience, func() string {
		pool := h.SlicesOf("explicit")
		if len(pool) == 3 && len(pool[0].Spec.Devices) == 3 && len(pool[2].Spec.Devices) == 1 {
			return harness.CompletePool(pool, 6)
		}
		return "gpu-1 has not moved"
	})
	watcher.Finish()
}

// testTaintSplitsSlice has an annotation taint one device of many, which makes a
// slice hold half as many, and takes it back.
func testTaintSplitsSlice(h *harness.H) {
	modelScene(h, "split", "", `[{name: port, count: 100, attributes: {index: {int: "{{ .Index }}"}}}]`, 100)
	require.Len(h, h.SlicesOf("split"), 1)
	watcher := h.WatchPool("split")
	watcher.Allow(100)
	slices := func(want int) {
		h.Helper()
		h.Eventually(harness.Patience, func() string {
			pool := h.SlicesOf("split")
			if len(pool) != want {
				return fmt.Sprintf("%d slices, want %d", len(pool), want)
			}
			return harness.CompletePool(pool, 100)
		})
	}
	taint(h, "split", "port-99:example.com/down:NoSchedule")
	slices(2)
	for _, slice := range h.SlicesOf("split") {
		require.LessOrEqual(h, len(slice.Spec.Devices), resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures)
	}
	getsNone(h, "split", "last", "is.index == 99")
	taint(h, "split", "")
	slices(1)
	require.Equal(h, "port-99", got(h, "split", "last"))
	watcher.Finish()
}
