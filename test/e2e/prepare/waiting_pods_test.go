package prepare

import (
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// testWaiting has the sidecar tell of Pods that wait: for a node, in the scheduler's words and
// in its own, and for devices that cannot be prepared.
func testWaiting(h *harness.H, process *sidecar.Process) {
	told := func(path string, words ...string) {
		h.Eventually(harness.Patience, func() string {
			return harness.Missing(read(h, process.URL+path), words...)
		})
	}
	h.Scene("waits", "")
	failing := harness.NewPod("failing", "waits", harness.FromTemplate)
	failing.Labels = map[string]string{"fail": "true"}
	h.CreatePod("waits", failing)
	spec := harness.ClaimSpec("waits")
	spec.Devices.Requests[0].Exactly.Count = 32
	h.CreateClaim("waits", "large", spec)
	h.CreatePod("waits", harness.NewPod("large", "waits", "large"))
	told("/api/waiting", `"pods":["failing"],"node":"waits"`, `failWhen selects the Pod`, `"retry":`, `"state":"unscheduled"`, `"pods":["large"]`, `cannot allocate all claims`)
	told("/api/why?namespace=waits&pod=large", `"state":"Unscheduled"`, `no node has as many devices: node waits`, `request waits wants 32 on one node`)
	told("/api/why?namespace=waits&pod=failing", `"state":"Preparing"`, `failWhen selects the Pod`)
}
