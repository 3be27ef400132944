package claims

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/objectstest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

func ask(change func(*listing.Question)) *listing.Answer {
	q := &listing.Question{Namespace: objectstest.Namespace, Now: objectstest.Now}
	change(q)
	return chooseClaims(q, usage.NewCluster(objectstest.Objects()))
}

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	prints := func(q listing.Question, format output.Format) func(out io.Writer) error {
		return func(out io.Writer) error {
			a := ask(func(asked *listing.Question) { asked.Namespace = q.Namespace })
			return a.Print(out, a.Rows, output.Layout{Format: format, Width: screen.Width(out)})
		}
	}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"answer":      prints(listing.Question{Namespace: objectstest.Namespace}, output.Table),
		"answer-all":  prints(listing.Question{}, output.Table),
		"answer-wide": prints(listing.Question{Namespace: objectstest.Namespace}, output.Wide),
	}, tabletest.Node, tabletest.Pod)
}

// TestChoosing has the names and flags that choose what is shown.
func TestChoosing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*listing.Question)
		claims  []string
		missing string
	}{
		"claim":     {func(q *listing.Question) { q.Claims = []string{"serve", "nobody"} }, []string{"nobody", "serve"}, ""},
		"Pod":       {func(q *listing.Question) { q.Pods = []string{tabletest.Pod} }, []string{"train-gpus"}, ""},
		"state":     {func(q *listing.Question) { q.States = []string{"idle", "waiting"} }, []string{"idle", "left", "wants"}, ""},
		"attribute": {func(q *listing.Question) { q.Attributes = []string{"uuid=GPU-b-gpu-0"} }, []string{"tainted"}, ""},
		"no such": {
			func(q *listing.Question) { q.Claims, q.Pods = []string{"nobdy"}, []string{"bare"} }, nil,
			`there is no claim "nobdy" in namespace ml: did you mean nobody?; no claim in namespace ml is for a Pod bare`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(test.change)
			var names []string
			for _, row := range a.Rows {
				names = append(names, row.Object.(*usage.Claim).Name)
			}
			require.Equal(t, test.claims, names)
			if test.missing == "" {
				require.NoError(t, a.Missing)
				return
			}
			require.EqualError(t, a.Missing, test.missing)
		})
	}
	require.Equal(t, "There is no claim in namespace none", chooseClaims(&listing.Question{Namespace: "none"}, usage.NewCluster(usage.Objects{})).Nothing)
}

// TestObjects has what programs read.
func TestObjects(t *testing.T) {
	t.Parallel()
	a := ask(func(q *listing.Question) { q.Claims = []string{"idle", "wants"} })
	data, err := json.Marshal([]any{a.Rows[0].Object, a.Rows[1].Object})
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"namespace": "ml", "claim": "idle", "state": "idle", "since": "2026-01-02T03:04:07Z", "pods": [], "reason": "no Pod uses the claim",
		 "devices": [{"request": "gpu", "driver": "gpu.example.com", "pool": "b", "device": "gpu-1", "product": "`+tabletest.Product+`", "uuid": "GPU-b-gpu-1"}]},
		{"namespace": "ml", "claim": "wants", "state": "waiting", "since": "2026-01-02T03:04:05Z", "pods": ["wants"], "devices": []}
	]`, string(data))
	require.Equal(t, "resourceclaim.resource.k8s.io/idle", a.Rows[0].Object.(*usage.Claim).ResourceName())
	require.Equal(t, usage.Released, a.Rows[0].Released().Object.(*usage.Claim).State)
}
