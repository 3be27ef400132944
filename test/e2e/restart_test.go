package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// TestRestart kills the sidecar while it publishes 500 nodes, and starts it
// again: after that nothing is missing, nothing is there twice, and a further
// restart writes nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	const nodes = 500
	h := newHarness(t, cluster.Options{Audit: true})
	h.configure("restart", template("restart", driver, "restart", `[{name: device, count: 130, attributes: {index: {int: "{{ .Index }}"}}}]`))
	h.createNodes("restart", nodes)
	process := h.sidecar()
	h.eventually(patience, func() string {
		if n := len(h.allSlices()); n < nodes/2 {
			return fmt.Sprintf("%d slices", n)
		}
		return ""
	})
	require.NoError(t, process.Kill())
	killed := len(h.allSlices())
	require.Less(t, killed, 2*nodes, "the sidecar was killed too late to prove anything")

	process = h.sidecar()
	h.eventually(fleetPatience, func() string { return wholeFleet(h.allSlices(), nodes) })
	require.NoError(t, process.Stop())
	want := h.allSlices()
	h.noWrites()
	h.requireStreamed("nodes", "pods", "resourceclaims", "resourceslices")

	edited := want[0]
	h.patchSlice(edited.Name, types.JSONPatchType, `[{"op": "replace", "path": "/spec/devices/0/attributes/index/int", "value": 7000}]`)
	gone := want[1]
	require.NoError(t, h.client.ResourceV1().ResourceSlices().Delete(t.Context(), gone.Name, metav1.DeleteOptions{}))
	h.sidecar()
	h.eventually(patience, func() string {
		now := h.allSlices()
		for _, slice := range now {
			if slice.Name == edited.Name && !sameSpec(slice.Spec, edited.Spec) {
				return "an edit made while the sidecar was down is still there"
			}
		}
		return wholeFleet(now, nodes)
	})
}

// noWrites restarts the sidecar on a state that is right, and has it prove by a
// node's coming that it has looked at everything.
func (h *harness) noWrites() {
	h.Helper()
	before := h.stored()
	process := h.sidecar()
	h.eventually(patience, func() string {
		added := h.metric(process, "workqueue_adds_total", `name="slices"`)
		done := h.metric(process, "workqueue_work_duration_seconds_count", `name="slices"`)
		if added == 0 || done < added {
			return fmt.Sprintf("%v of %v nodes looked at", done, added)
		}
		return ""
	})
	require.NoError(h, process.Stop())
	require.Equal(h, before, h.stored(), "a restart with nothing changed writes nothing")
}

// requireStreamed wants the sidecar to have filled its caches by watches that begin
// with what there is (KEP-3157): a list of a large fleet is held in memory as a
// whole, by the API server and by the sidecar.
func (h *harness) requireStreamed(resources ...string) {
	h.Helper()
	for _, resource := range resources {
		streams := 0
		for _, event := range h.audited(func(event *cluster.AuditEvent) bool {
			return strings.HasPrefix(event.UserAgent, "kwok-dra/") && event.ObjectRef.Resource == resource && event.ObjectRef.Name == "" && !event.Mutating()
		}) {
			require.Equal(h, "watch", event.Verb, event.RequestURI)
			if strings.Contains(event.RequestURI, "sendInitialEvents=true") {
				streams++
			}
		}
		require.NotZero(h, streams, "no watch of %s began with what there was", resource)
	}
}

// stored counts the sidecar's writes but for those that only ask.
func (h *harness) stored() int {
	h.Helper()
	return len(slices.DeleteFunc(h.writes(""), func(event cluster.AuditEvent) bool { return strings.Contains(event.RequestURI, "dryRun=All") }))
}

func wholeFleet(all []resourcev1.ResourceSlice, nodes int) string {
	byNode := map[string][]resourcev1.ResourceSlice{}
	for _, slice := range all {
		byNode[*slice.Spec.NodeName] = append(byNode[*slice.Spec.NodeName], slice)
	}
	if len(byNode) != nodes {
		return fmt.Sprintf("%d nodes have slices, want %d", len(byNode), nodes)
	}
	for node, pool := range byNode {
		if missing := completePool(pool, 130); missing != "" {
			return "node " + node + ": " + missing
		}
		if len(pool) != 2 {
			return fmt.Sprintf("node %s has %d slices, want 2", node, len(pool))
		}
	}
	return ""
}

func (h *harness) allSlices() []resourcev1.ResourceSlice {
	h.Helper()
	list, err := h.client.ResourceV1().ResourceSlices().List(h.Context(), metav1.ListOptions{})
	require.NoError(h, err)
	return list.Items
}

func (h *harness) createNodes(kind string, count int) {
	h.Helper()
	var creating sync.WaitGroup
	errs := make([]error, count)
	for worker := range 8 {
		creating.Go(func() {
			for i := worker; i < count; i += 8 {
				node := fakeNode(fmt.Sprintf("%s-%d", kind, i), kind)
				_, errs[i] = h.client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
			}
		})
	}
	creating.Wait()
	for _, err := range errs {
		require.NoError(h, err)
	}
}
