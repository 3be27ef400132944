package drivers

import (
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// sideBySide: a driver with a template and a real one work on the same node, for the same Pod, and for the
// same claim.
func sideBySide(s *scene) {
	const node, made = "side", "made.example.com"
	s.Configure("made", harness.WithSpec(harness.Template("made", made, node, harness.GPUs(4)), "claimStatus: {data: {model: H100}, cdiDeviceIDs: ['example.com/gpu={{ .Claim.uid }}']}"))
	d := s.newDriver(node)
	s.DeviceClass("made", made)
	s.Eventually(harness.Patience, func() string { return s.Complete(node, map[string]int{made: 4, d.Name: 4}) })
	// entries waits until only the driver with a template has written its device to the status of a claim.
	entries := func(claim string, count int) {
		s.Helper()
		for _, entry := range s.Entries(node, claim, count).Status.Devices {
			require.Equal(s, made, entry.Driver)
		}
	}

	s.CreateClaim(node, "of-template", harness.ClaimSpec("made"))
	s.CreateClaim(node, "of-driver", harness.ClaimSpec(node))
	s.CreatePod(node, quickPod("both", node, "of-template", "of-driver"))
	s.Running(node, "both")
	entries("of-template", 1)
	entries("of-driver", 0)
	prepared := d.File(s.deviceOf(node, "of-driver"))
	require.FileExists(s, prepared)
	agentSees(s, d)

	d.fails(prepare)
	s.createPod("mixed", node, "made", node)
	require.Contains(s, s.FailedPrepare(node, "mixed").Message, "simulated failure")
	entries("mixed", 0)
	d.answers(nil)
	s.Running(node, "mixed")
	entries("mixed", 1)
	require.Equal(s, 2, d.count(prepare+succeeded))

	for _, pod := range []string{"both", "mixed"} {
		s.gone(pod, node)
		require.Equal(s, map[string]string{"both": unprepare + " of-driver", "mixed": unprepare + " mixed"}[pod], d.last())
	}
	require.NoFileExists(s, prepared)
	for _, claim := range []string{"of-template", "of-driver", "mixed"} {
		entries(claim, 0)
	}
}
