package claims

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	w := worldtest.New(t, worldtest.PodsAndClaims())
	tabletest.Golden(t, w.Tables(New, map[string][]string{"answer": nil, "answer-all": {"-A"}, "answer-wide": {"-o", "wide"}}), tabletest.Node, tabletest.Pod)
}

// TestChoosing has the names and flags that choose what is shown.
func TestChoosing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ arguments, claims, missing string }{
		"claims":    {"serve claim/nobody", "nobody serve", ""},
		"Pod":       {"pod/" + tabletest.Pod, "train-gpus", ""},
		"state":     {"--state idle --state waiting", "idle left wants", ""},
		"attribute": {"--attribute uuid=GPU-b-gpu-0", "tainted", ""},
		"no such":   {"nobdy pod/bare", "", `there is no claim "nobdy" in namespace ml: did you mean nobody?; no claim in namespace ml is for a Pod bare`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := worldtest.New(t, worldtest.PodsAndClaims()).Run(New, append(strings.Fields(test.arguments), "-o", "jsonpath={range .items[*]}{.claim} {end}")...)
			require.Equal(t, test.claims, strings.TrimSpace(a.Out))
			if test.missing == "" {
				require.NoError(t, a.Err)
				return
			}
			require.EqualError(t, a.Err, test.missing)
		})
	}
	require.Equal(t, &worldtest.Answer{ErrOut: "There is no claim in namespace none\n"}, worldtest.New(t, worldtest.PodsAndClaims()).Run(New, "-n", "none"))
}

// TestObjects has what programs read.
func TestObjects(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.PodsAndClaims())
	require.JSONEq(t, `[
		{"namespace": "ml", "claim": "idle", "state": "idle", "since": "2026-01-02T03:04:07Z", "pods": [], "reason": "no Pod uses the claim",
		 "devices": [{"request": "gpu", "driver": "gpu.example.com", "pool": "b", "device": "gpu-1", "product": "`+tabletest.Product+`", "uuid": "GPU-b-gpu-1"}]},
		{"namespace": "ml", "claim": "wants", "state": "waiting", "since": "2026-01-02T03:04:05Z", "pods": ["wants"], "devices": []}
	]`, w.Items(New, "idle", "wants"))
	require.Equal(t, "resourceclaim.resource.k8s.io/idle\n", w.Ask(New, "idle", "-o", "name"))
}
