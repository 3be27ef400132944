package pods

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
	for name, test := range map[string]struct{ arguments, pods, missing string }{
		"Pods":      {"serve pod/sick", "serve sick", ""},
		"claim":     {"resourceclaim.resource.k8s.io/train-gpus", tabletest.Pod + " " + tabletest.Pod, ""},
		"state":     {"--state gone,waiting", "gone unmade wants", ""},
		"attribute": {"--attribute memory --attribute productName=*H100* --attribute uuid!=GPU-b-gpu-1 --attribute uuid=GPU-b-gpu-0", "tainted", ""},
		"no such Pod": {
			"srve bare", "",
			`there is no Pod "srve" in namespace ml: did you mean serve?; Pod bare uses no device: it has no claim`,
		},
		"no such claim": {"claim/x", "", "no Pod in namespace ml uses a claim x: kubectl dra claims -n ml"},
		"node":          {"node/x", "", "node/x: only Pods and claims have devices: write pod/NAME or claim/NAME"},
		"no state":      {"--state prepard", "", "parse --state prepard: there is no such state: did you mean prepared?"},
		"no attribute":  {"--attribute =H100", "", `parse --attribute "=H100": write NAME=VALUE, NAME!=VALUE or NAME, such as model=*H100*`},
		"no selector":   {"-l (", "", "parse --selector: found '(', expected: !, identifier, or 'end of string'"},
		"name and -l":   {"-l a=b x", "", "names cannot be given with -l or -A"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := worldtest.New(t, worldtest.PodsAndClaims()).Run(New, append(strings.Fields(test.arguments), "-o", "jsonpath={range .items[*]}{.pod} {end}")...)
			require.Equal(t, test.pods, strings.TrimSpace(a.Out))
			if test.missing == "" {
				require.NoError(t, a.Err)
				return
			}
			require.EqualError(t, a.Err, test.missing)
		})
	}
	a := worldtest.New(t, worldtest.PodsAndClaims()).Run(New, "--state", "prepared", "--attribute", "model=A100")
	require.Equal(t, &worldtest.Answer{ErrOut: "No Pod has or wants a device in namespace ml with --state prepared and --attribute model=A100\n"}, a)
}

// TestReading reads slices only if a claim has a device.
func TestReading(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.Pod("wants", "", "wants"), worldtest.Claim("wants", "", nil))
	require.Equal(t, "pod/wants\n", w.Ask(New, "-o", "name"))
	for _, action := range w.Client.Actions() {
		require.NotEqual(t, "resourceslices", action.GetResource().Resource)
	}
}

// TestObjects has what programs read.
func TestObjects(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `[
		{"namespace": "ml", "pod": "serve", "node": "`+tabletest.Node+`", "claim": "serve", "request": "gpu", "driver": "gpu.example.com", "pool": "`+tabletest.Node+`",
		 "device": "gpu-3", "product": "`+tabletest.Product+`", "uuid": "GPU-`+tabletest.Node+`-gpu-3", "state": "failing", "since": "2026-01-02T03:04:09Z",
		 "reason": "Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered"},
		{"namespace": "ml", "pod": "wants", "claim": "wants", "state": "waiting", "since": "2026-01-02T03:04:08Z",
		 "reason": "0/2 nodes are available: 2 cannot allocate all claims."}
	]`, worldtest.New(t, worldtest.PodsAndClaims()).Items(New, "serve", "wants"))
}
