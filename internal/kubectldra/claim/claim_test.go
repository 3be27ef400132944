package claim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders claims that are used, that wait, and that nobody releases.
func TestTables(t *testing.T) {
	w := worldtest.New(t, worldtest.PodsAndClaims())
	tabletest.Golden(t, w.Tables(New, map[string][]string{
		"show": {"train-gpus"}, "show-failing": {"claim/serve"}, "show-waiting": {"wants"}, "show-stuck": {"left", "resourceclaim/ended"},
	}), tabletest.Pod)
}

// TestHolders: whoever holds the claim has a line, even if it is gone.
func TestHolders(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.PodsAndClaims())
	require.Equal(t, "pods/left gone: the Pod does not exist\npods/ending is being deleted\n",
		w.Ask(New, "left", "ending", "-o", `jsonpath={range .items[*].holders[*]}{.name} {.state}{"\n"}{end}`))
	require.JSONEq(t, `[{"namespace": "ml", "claim": "nobody", "state": "unused", "since": "2026-01-02T03:04:05Z", "pods": [], "devices": [], "reason": "no Pod names the claim",
		"holders": [], "steps": [{"time": "2026-01-02T03:04:05Z", "step": "created", "detail": "gpu wants 1 of gpu"}]}]`, w.Items(New, "nobody"))
}

// TestMissing says which claim may be meant, and what is no claim.
func TestMissing(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"serv":      `there is no claim "serv" in namespace ml: did you mean serve?`,
		"pod/serve": "pod/serve is no claim: write NAME or claim/NAME",
	} {
		require.EqualError(t, worldtest.New(t, worldtest.PodsAndClaims()).Run(New, argument).Err, want)
	}
}
