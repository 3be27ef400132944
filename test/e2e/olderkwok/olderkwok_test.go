// Package olderkwok proves that the sidecar works with the oldest supported
// releases of kwok. Their programs are built first, which takes a while.
package olderkwok

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestOlderKwok has Pods held back by the project's pod-ready with the kwok
// releases whose own pod-ready is another.
func TestOlderKwok(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0.6.1", "0.7.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h := harness.New(t, cluster.Options{KwokVersion: version, Config: harness.FastStages(t)})
			h.Configure("configuration", harness.Knobs)
			h.Sidecar()
			h.Scene("older", "")
			held := harness.NewPod("held", "older", harness.FromTemplate)
			held.Labels = map[string]string{"hold": "true"}
			h.CreatePod("older", held)
			h.CreatePod("older", harness.NewPod("plain", "older"))
			h.CreatePod("older", harness.NewPod("prepared", "older", harness.FromTemplate))
			h.Running("older", "plain")
			require.True(t, harness.IsReady(h.Running("older", "prepared")))
			require.Len(t, h.ClaimOf("older", "prepared").Status.Devices, 1)
			require.Equal(t, "Pending", string(h.Pod("older", "held").Status.Phase))
			h.PatchPod("older", "held", `{"metadata": {"labels": {"hold": null}}}`)
			h.Running("older", "held")
			for _, pod := range []string{"plain", "prepared", "held"} {
				h.DeletePod("older", pod, 1)
				h.Gone("older", pod)
			}
		})
	}
}
