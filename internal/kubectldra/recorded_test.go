package kubectldra

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/claim"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/claims"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/overview"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/pods"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/why"
)

// TestRecorded: of what a real kubelet and the example's driver leave in the API, each command says the same as of what
// kwok-dra makes in their place. testdata has both for each story. The kubelet adds fields, such as the claims of container
// statuses, and names slices and events otherwise.
func TestRecorded(t *testing.T) {
	t.Parallel()
	const (
		isHealthy = "2 devices: 1 free, 1 in use. No problems"
		isGone    = "1 device: 1 gone. 1 problem"
		silent    = "driver gpu.example.com publishes no devices on node worker: is its plugin running there?"
		crashed   = `Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources: rpc error: code = Unavailable desc = connection error: ` +
			`desc = "transport: Error while dialing: dial unix dra.sock: connect: connection refused"`
		unregistered = "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.example.com is not registered"
	)
	// pods has the state and the reason of the first device, and the others their first lines.
	for story, want := range map[string]struct{ pods, claim, why, overview string }{
		"prepared":       {"prepared", "prepared", "train: it runs on node worker", isHealthy},
		"shared":         {"prepared", "prepared", "train: it runs on node worker", isHealthy},
		"prepare-fails":  {"failing " + crashed, "failing", "train waits for its claims to be prepared (59m): " + crashed, "2 devices: 1 free, 1 unhealthy. 1 problem"},
		"not-registered": {"failing " + unregistered + ": " + silent, "failing", "train waits for its claims to be prepared (59m): " + unregistered + ": " + silent, isGone},
		"stuck":          {"ending the Pod is being deleted", "ending", "train is being deleted: its claims are still to be unprepared (train-gpu-5xk9d), and " + silent, isGone},
		"unhealthy":      {"unhealthy ECC errors", "unhealthy", "train: it runs on node worker", "2 devices: 1 free, 1 unhealthy. 1 problem"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			kubelet, fake := worldOf(t, story+".kubelet"), worldOf(t, story+".kwok-dra")
			for _, asked := range []struct {
				command   worldtest.Command
				arguments []string
			}{{pods.New, nil}, {claims.New, nil}, {claim.New, []string{"train-gpu-5xk9d"}}, {why.New, []string{"train", "claim/train-gpu-5xk9d"}}, {overview.New, nil}} {
				require.JSONEq(t, kubelet.Items(asked.command, asked.arguments...), fake.Items(asked.command, asked.arguments...))
				require.Equal(t, kubelet.Ask(asked.command, asked.arguments...), fake.Ask(asked.command, asked.arguments...))
			}
			firstLine := func(text string) string { return strings.SplitN(text, "\n", 2)[0] }
			require.Equal(t, want.pods, strings.TrimSpace(kubelet.Ask(pods.New, "train", "-o", "jsonpath={.items[0].state} {.items[0].reason}")))
			require.Contains(t, firstLine(kubelet.Ask(claim.New, "train-gpu-5xk9d")), "Claim ml/train-gpu-5xk9d is "+want.claim)
			require.Equal(t, "Pod ml/"+want.why, firstLine(kubelet.Ask(why.New, "train")))
			require.Equal(t, want.overview, firstLine(kubelet.Ask(overview.New)))
		})
	}
}

func worldOf(t *testing.T, story string) *worldtest.World {
	t.Helper()
	objects, err := os.ReadFile(filepath.Join("testdata", "recorded", story+".yaml"))
	require.NoError(t, err)
	return worldtest.New(t, string(objects))
}
