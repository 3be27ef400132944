package devices

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// testSharedCounters has counters as they are in resource.k8s.io/v1: halves of
// GPUs beside whole ones.
func testSharedCounters(h *harness.H) {
	modelScene(h, "halves", `sharedCounters: [{name: gpu, count: 2, counters: {memory: {value: 80Gi}}}]`, `
  - name: gpu
    count: 2
    attributes: {profile: whole}
    consumesCounters: [{counterSet: "gpu-{{ .Index }}", counters: {memory: {value: 80Gi}}}]
  - name: half
    count: 4
    attributes: {profile: half}
    consumesCounters: [{counterSet: "gpu-{{ div .Index 2 }}", counters: {memory: {value: 40Gi}}}]`, 6)
	const half = `is.profile == "half"`
	require.Equal(h, "gpu-0", gets(h, "halves", "whole", whole))
	require.Equal(h, "half-2", gets(h, "halves", "first", half))
	getsNone(h, "halves", "other", whole)
	require.Equal(h, "half-3", gets(h, "halves", "second", half))
	getsNone(h, "halves", "third", half)
	frees(h, "halves", "whole")
	podRunsOf(h, "halves", "other", "third")
}

// podRunsOf waits until one of two Pods, which both wait for the same counters,
// runs, and the other still waits.
func podRunsOf(h *harness.H, scene, one, other string) {
	h.Helper()
	running := ""
	h.Eventually(harness.Patience, func() string {
		for _, pod := range []string{one, other} {
			if h.Pod(scene, pod).Status.Phase == "Running" {
				running = pod
				return ""
			}
		}
		return "neither runs"
	})
	h.Unschedulable(scene, map[string]string{one: other, other: one}[running])
}

// testCountersOfThreeDevices has devices of several groups consume from one set
// that has more than one counter, by a name that is a template.
func testCountersOfThreeDevices(h *harness.H) {
	modelScene(h, "budget", `sharedCounters: [{name: "board-{{ .Index }}", count: 1, counters: {power: {value: "300"}, lanes: {value: "16"}}}]`, `
  - name: accelerator
    count: 2
    attributes: {profile: accelerator}
    consumesCounters: [{counterSet: board-0, counters: {power: {value: "200"}, lanes: {value: "8"}}}]
  - name: nic
    attributes: {profile: nic}
    consumesCounters: [{counterSet: board-0, counters: {power: {value: "25"}, lanes: {value: "8"}}}]`, 3)
	gets(h, "budget", "first", `is.profile == "accelerator"`)
	getsNone(h, "budget", "second", `is.profile == "accelerator"`)
	require.Equal(h, "nic", gets(h, "budget", "nic", `is.profile == "nic"`))
}

// testCountersOfSharedPool has nodes compete for the counters of a pool that they
// share.
func testCountersOfSharedPool(h *harness.H) {
	const devices = `[{name: lease, count: 4, attributes: {profile: lease}, consumesCounters: [{counterSet: licences, counters: {seats: {value: "2"}}}]}]`
	h.Configure("leases", harness.WithSpec(harness.Template("leases", harness.Fabric("leases"), "leases", devices),
		"sharedWith: {allNodes: true}\n  sharedCounters: [{name: licences, counters: {seats: {value: \"5\"}}}]"))
	hostNode(h, "leases-0", "leases")
	hostNode(h, "leases-1", "leases")
	requireCounterLayout(h, sharedPool(h, "leases", 4), 1)
	h.Namespace("leases", harness.Fabric("leases"))
	for i := range 2 {
		pod := fmt.Sprint("pod-", i)
		h.CreatePod("leases", onHost(pod, fmt.Sprint("leases-", i), "leases", harness.FromTemplate))
		require.True(h, harness.IsReady(h.Running("leases", pod)))
	}
	h.CreatePod("leases", onHost("third", "leases-1", "leases", harness.FromTemplate))
	h.Unschedulable("leases", "third")
	frees(h, "leases", "pod-0")
	h.Running("leases", "third")
}
