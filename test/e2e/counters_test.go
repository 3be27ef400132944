package e2e

import (
	"fmt"

	"github.com/stretchr/testify/require"
)

// testSharedCounters has counters as they are in resource.k8s.io/v1: halves of
// GPUs beside whole ones.
func testSharedCounters(h *harness) {
	h.modelScene("halves", `sharedCounters: [{name: gpu, count: 2, counters: {memory: {value: 80Gi}}}]`, `
  - name: gpu
    count: 2
    attributes: {profile: whole}
    consumesCounters: [{counterSet: "gpu-{{ .Index }}", counters: {memory: {value: 80Gi}}}]
  - name: half
    count: 4
    attributes: {profile: half}
    consumesCounters: [{counterSet: "gpu-{{ div .Index 2 }}", counters: {memory: {value: 40Gi}}}]`, 6)
	const half = `is.profile == "half"`
	require.Equal(h, "gpu-0", h.gets("halves", "whole", whole))
	require.Equal(h, "half-2", h.gets("halves", "first", half))
	h.getsNone("halves", "other", whole)
	require.Equal(h, "half-3", h.gets("halves", "second", half))
	h.getsNone("halves", "third", half)
	h.frees("halves", "whole")
	h.podRunsOf("halves", "other", "third")
}

// podRunsOf waits until one of two Pods, which both wait for the same counters,
// runs, and the other still waits.
func (h *harness) podRunsOf(scene, one, other string) {
	h.Helper()
	running := ""
	h.eventually(patience, func() string {
		for _, pod := range []string{one, other} {
			if h.pod(scene, pod).Status.Phase == "Running" {
				running = pod
				return ""
			}
		}
		return "neither runs"
	})
	h.unschedulable(scene, map[string]string{one: other, other: one}[running])
}

// testCountersOfThreeDevices has devices of several groups consume from one set
// that has more than one counter, by a name that is a template.
func testCountersOfThreeDevices(h *harness) {
	h.modelScene("budget", `sharedCounters: [{name: "board-{{ .Index }}", count: 1, counters: {power: {value: "300"}, lanes: {value: "16"}}}]`, `
  - name: accelerator
    count: 2
    attributes: {profile: accelerator}
    consumesCounters: [{counterSet: board-0, counters: {power: {value: "200"}, lanes: {value: "8"}}}]
  - name: nic
    attributes: {profile: nic}
    consumesCounters: [{counterSet: board-0, counters: {power: {value: "25"}, lanes: {value: "8"}}}]`, 3)
	h.gets("budget", "first", `is.profile == "accelerator"`)
	h.getsNone("budget", "second", `is.profile == "accelerator"`)
	require.Equal(h, "nic", h.gets("budget", "nic", `is.profile == "nic"`))
}

// testCountersOfSharedPool has nodes compete for the counters of a pool that they
// share.
func testCountersOfSharedPool(h *harness) {
	const devices = `[{name: lease, count: 4, attributes: {profile: lease}, consumesCounters: [{counterSet: licences, counters: {seats: {value: "2"}}}]}]`
	h.configure("leases", withSpec(template("leases", fabric("leases"), "leases", devices),
		"sharedWith: {allNodes: true}\n  sharedCounters: [{name: licences, counters: {seats: {value: \"5\"}}}]"))
	h.hostNode("leases-0", "leases")
	h.hostNode("leases-1", "leases")
	requireCounterLayout(h, h.sharedPool("leases", 4), 1)
	h.namespace("leases", fabric("leases"))
	for i := range 2 {
		pod := fmt.Sprint("pod-", i)
		h.createPod("leases", onHost(pod, fmt.Sprint("leases-", i), "leases", fromTemplate))
		require.True(h, isReady(h.running("leases", pod)))
	}
	h.createPod("leases", onHost("third", "leases-1", "leases", fromTemplate))
	h.unschedulable("leases", "third")
	h.frees("leases", "pod-0")
	h.running("leases", "third")
}
