package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestRestart kills the sidecar halfway through a fleet, while it waits for answers
// to what it has written, and starts it again: after that nothing is missing,
// nothing is there twice, and a further restart writes nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	const nodes = 150
	h := harness.New(t, cluster.Options{Audit: true})
	h.Configure("restart", harness.Template("restart", harness.Driver, "restart", `[{name: device, count: 130, attributes: {index: {int: "{{ .Index }}"}}}]`))
	h.CreateNodes("restart", nodes)
	proxy, kubeconfig := h.NewProxy()
	h.Kubeconfig = kubeconfig
	waiting := proxy.LoseAnswers(nodes)
	process := h.Sidecar()
	h.Eventually(harness.Patience, func() string {
		if waiting() == 0 {
			return fmt.Sprintf("%d slices, and no answer is lost", len(h.AllSlices()))
		}
		return ""
	})
	require.NoError(t, process.Kill())
	require.Less(t, len(h.AllSlices()), 2*nodes, "the sidecar was killed too late to prove anything")
	proxy.Fault.Store(nil)

	process = h.Sidecar()
	h.Eventually(harness.FleetPatience, func() string { return wholeFleet(h.AllSlices(), nodes) })
	require.NoError(t, process.Stop())
	want := h.AllSlices()
	h.NoWrites()
	requireStreamed(h, "nodes", "pods", "resourceclaims", "resourceslices")

	edited := want[0]
	h.PatchSlice(edited.Name, types.JSONPatchType, `[{"op": "replace", "path": "/spec/devices/0/attributes/index/int", "value": 7000}]`)
	gone := want[1]
	require.NoError(t, h.Client.ResourceV1().ResourceSlices().Delete(t.Context(), gone.Name, metav1.DeleteOptions{}))
	h.Sidecar()
	h.Eventually(harness.Patience, func() string {
		now := h.AllSlices()
		for _, slice := range now {
			if slice.Name == edited.Name && !harness.SameSpec(slice.Spec, edited.Spec) {
				return "an edit made while the sidecar was down is still there"
			}
		}
		return wholeFleet(now, nodes)
	})
}

// requireStreamed wants the sidecar to have filled its caches by watches that begin
// with what there is (KEP-3157): a list of a large fleet is held in memory as a
// whole, by the API server and by the sidecar.
func requireStreamed(h *harness.H, resources ...string) {
	h.Helper()
	for _, resource := range resources {
		streams := 0
		for _, event := range h.Audited(func(event *cluster.AuditEvent) bool {
			return strings.HasPrefix(event.UserAgent, "kwok-dra/") && event.ObjectRef.Resource == resource && event.ObjectRef.Name == "" && !event.Mutating()
		}) {
			if strings.HasSuffix(event.RequestURI, "?limit=1") {
				continue // asks for the newest version, before a watch that has ended goes on
			}
			require.Equal(h, "watch", event.Verb, event.RequestURI)
			if strings.Contains(event.RequestURI, "sendInitialEvents=true") {
				streams++
			}
		}
		require.NotZero(h, streams, "no watch of %s began with what there was", resource)
	}
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
		if missing := harness.CompletePool(pool, 130); missing != "" {
			return "node " + node + ": " + missing
		}
		if len(pool) != 2 {
			return fmt.Sprintf("node %s has %d slices, want 2", node, len(pool))
		}
	}
	return ""
}
