package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestRecreatedNode has no garbage collector: what goes, the sidecar deletes.
func TestRecreatedNode(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Disable: []string{cluster.ControllerManager, cluster.Scheduler}})
	h.Sidecar()
	h.Configure("again", harness.Template("again", harness.Driver, "again", harness.GPUs(300)))
	h.CreateNode("again", "again")
	h.Published("again", harness.Driver, 300)

	h.DeleteNode("again")
	node := h.CreateNode("again", "again")
	h.Eventually(harness.Patience, func() string {
		pool := h.SlicesOf("again")
		if missing := harness.CompletePool(pool, 300); missing != "" {
			return missing
		}
		for _, slice := range pool {
			if slice.OwnerReferences[0].UID != node.UID {
				return "slice " + slice.Name + " belongs to the old node"
			}
		}
		return ""
	})

	h.DeleteNode("again")
	h.Eventually(harness.Patience, func() string {
		if n := len(h.SlicesOf("again")); n > 0 {
			return fmt.Sprintf("%d slices are left", n)
		}
		return ""
	})
}

func testNotReadyStays(h *harness.H) {
	h.Configure("stays", harness.Template("stays", harness.Driver, "stays", harness.GPUs(8)))
	h.CreateNode("stays", "stays")
	before := h.Published("stays", harness.Driver, 8)
	h.Label("stays", "node-not-ready.stage.kwok.x-k8s.io", "true")
	h.NodeReady("stays", corev1.ConditionFalse)

	// Another template makes the sidecar look at the node again.
	h.Configure("stays", harness.Template("stays", harness.Driver, "stays", harness.GPUs(8))+harness.Template("stays-nic", "nic.example.com", "stays", `[{name: nic}]`))
	h.Configure("beside", harness.Template("beside", harness.Driver, "beside", harness.GPUs(1)))
	h.CreateNode("beside", "beside")
	h.Published("beside", harness.Driver, 1)
	require.Equal(h, before, h.SlicesOf("stays"), "slices stay as they are, and no new pool is published")

	h.Label("stays", "node-not-ready.stage.kwok.x-k8s.io", nil)
	h.NodeReady("stays", corev1.ConditionTrue)
	h.Eventually(harness.Patience, func() string { return h.Complete("stays", map[string]int{harness.Driver: 8, "nic.example.com": 1}) })
}

func testRetireWhen(h *harness.H) {
	retire := `retireWhen: {matchExpressions: [{key: '.status.conditions.[] | select( .type == "dra.kwok.x-k8s.io/PluginRegistered" ) | .status', operator: In, values: ["False"]}]}`
	h.Configure("retire", strings.Replace(harness.Template("retire", harness.Driver, "retire", harness.GPUs(8)), "spec:", "spec:\n  "+retire, 1))
	h.CreateNode("retire", "retire")
	h.Published("retire", harness.Driver, 8)
	h.PluginRegistered("retire", "False")
	h.Retired("retire")
	h.PluginRegistered("retire", "True")
	require.Equal(h, int64(1), harness.Generation(h.Published("retire", harness.Driver, 8)))
}

func testPublishWhen(h *harness.H) {
	publish := `publishWhen: {matchExpressions: [{cel: {expression: 'self.metadata.labels.exists(k, k == "driver-up")'}}]}`
	late := strings.Replace(harness.Template("late", "late.example.com", "when", harness.GPUs(1)), "spec:", "spec:\n  "+publish, 1)
	h.Configure("when", late+harness.Template("early", harness.Driver, "when", harness.GPUs(1)))
	h.CreateNode("when", "when")
	h.Published("when", harness.Driver, 1)
	h.Label("when", "driver-up", "yes")
	h.Eventually(harness.Patience, func() string { return h.Complete("when", map[string]int{harness.Driver: 1, "late.example.com": 1}) })
	h.Label("when", "driver-up", nil)
	h.Configure("when", late+harness.Template("early", harness.Driver, "when", harness.GPUs(2)))
	h.Eventually(harness.Patience, func() string { return h.Complete("when", map[string]int{harness.Driver: 2, "late.example.com": 1}) })
}
