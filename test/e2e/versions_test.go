package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// TestOlderKwok has Pods held back by the project's pod-ready with the kwok
// releases whose own pod-ready is another.
func TestOlderKwok(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0.6.1", "0.7.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, cluster.Options{KwokVersion: version, Config: fastStages(t)})
			h.configure("configuration", knobs)
			h.sidecar()
			h.scene("older", "")
			held := newPod("held", "older", fromTemplate)
			held.Labels = map[string]string{"hold": "true"}
			h.createPod("older", held)
			h.createPod("older", newPod("plain", "older"))
			h.createPod("older", newPod("prepared", "older", fromTemplate))
			h.running("older", "plain")
			require.True(t, isReady(h.running("older", "prepared")))
			require.Len(t, h.claimOf("older", "prepared").Status.Devices, 1)
			require.Equal(t, "Pending", string(h.pod("older", "held").Status.Phase))
			h.patchPod("older", "held", `{"metadata": {"labels": {"hold": null}}}`)
			h.running("older", "held")
			for _, pod := range []string{"plain", "prepared", "held"} {
				h.deletePod("older", pod, 1)
				h.gone("older", pod)
			}
		})
	}
}
