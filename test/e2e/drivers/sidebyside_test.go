package drivers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestSideBySide: a driver with a template and a real one work on the same node, for the same Pod, and for the
// same claim.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	s := newGeneralScene(t, cluster.Options{})
	const node, made = "side", "made.example.com"
	s.Configure("made", harness.WithSpec(harness.Template("made", made, node, harness.GPUs(4)), "claimStatus: {data: {model: H100}}"))
	d := s.newDriver(node)
	s.DeviceClass("made", made)
	s.Eventually(harness.Patience, func() string { return s.Complete(node, map[string]int{made: 4, d.Name: 4}) })
	// entries waits until only the driver with a template has written its device to the status of a claim.
	entries := func(claim string, count int) {
		t.Helper()
		for _, entry := range s.Entries(node, claim, count).Status.Devices {
			require.Equal(t, made, entry.Driver)
		}
	}

	s.CreateClaim(node, "of-template", harness.ClaimSpec("made"))
	s.CreateClaim(node, "of-driver", harness.ClaimSpec(node))
	s.CreatePod(node, quickPod("both", node, "of-template", "of-driver"))
	s.Running(node, "both")
	entries("of-template", 1)
	entries("of-driver", 0)
	require.FileExists(t, d.File(s.deviceOf(node, "of-driver")))

	d.fails(prepare)
	s.createPod("mixed", node, "made", node)
	require.Contains(t, s.FailedPrepare(node, "mixed").Message, "simulated failure")
	entries("mixed", 0)
	d.answers(nil)
	s.Running(node, "mixed")
	entries("mixed", 1)
	require.Equal(t, 2, d.count(prepare+succeeded))

	for _, pod := range []string{"both", "mixed"} {
		s.gone(pod, node)
		require.Equal(t, map[string]string{"both": unprepare + " of-driver", "mixed": unprepare + " mixed"}[pod], d.last())
	}
	for _, claim := range []string{"of-template", "of-driver", "mixed"} {
		entries(claim, 0)
	}
}
