package pods

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
	return choosePods(q, usage.NewCluster(objectstest.Objects()))
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
	podsOf := func(a *listing.Answer) []string {
		var names []string
		for _, row := range a.Rows {
			names = append(names, row.Object.(*usage.Use).Pod)
		}
		return names
	}
	for name, test := range map[string]struct {
		change  func(*listing.Question)
		pods    []string
		missing string
	}{
		"Pod":   {func(q *listing.Question) { q.Pods = []string{"serve", "sick"} }, []string{"serve", "sick"}, ""},
		"claim": {func(q *listing.Question) { q.Claims = []string{"train-gpus"} }, []string{tabletest.Pod, tabletest.Pod}, ""},
		"state": {func(q *listing.Question) { q.States = []string{"gone", "waiting"} }, []string{"gone", "unmade", "wants"}, ""},
		"attribute": {func(q *listing.Question) {
			q.Attributes = []string{"memory", "productName=*H100*", "uuid!=GPU-b-gpu-1", "uuid=GPU-b-gpu-0"}
		}, []string{"tainted"}, ""},
		"no such Pod": {
			func(q *listing.Question) { q.Pods = []string{"srve", "bare"} }, nil,
			`there is no Pod "srve" in namespace ml: did you mean serve?; Pod bare uses no device: it has no claim`,
		},
		"no such claim": {func(q *listing.Question) { q.Claims = []string{"x"} }, nil, "no Pod in namespace ml uses a claim x: kubectl dra claims -n ml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(test.change)
			require.Equal(t, test.pods, podsOf(a))
			if test.missing == "" {
				require.NoError(t, a.Missing)
				return
			}
			require.EqualError(t, a.Missing, test.missing)
		})
	}
	none := ask(func(q *listing.Question) { q.States, q.Attributes = []string{"prepared"}, []string{"model=A100"} })
	require.Equal(t, "No Pod has or wants a device in namespace ml with --state prepared and --attribute model=A100", none.Nothing)
}

// TestObjects has what programs read.
func TestObjects(t *testing.T) {
	t.Parallel()
	a := ask(func(q *listing.Question) { q.Pods = []string{"serve", "wants"} })
	data, err := json.Marshal([]any{a.Rows[0].Object, a.Rows[1].Object})
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"namespace": "ml", "pod": "serve", "node": "`+tabletest.Node+`", "claim": "serve", "request": "gpu", "driver": "gpu.example.com", "pool": "`+tabletest.Node+`",
		 "device": "gpu-3", "product": "`+tabletest.Product+`", "uuid": "GPU-`+tabletest.Node+`-gpu-3", "state": "failing", "since": "2026-01-02T03:04:09Z",
		 "reason": "Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered"},
		{"namespace": "ml", "pod": "wants", "claim": "wants", "state": "waiting", "since": "2026-01-02T03:04:08Z",
		 "reason": "0/2 nodes are available: 2 cannot allocate all claims."}
	]`, string(data))
	require.Equal(t, "pod/serve", a.Rows[0].Object.(*usage.Use).ResourceName())
	released := a.Rows[0].Released()
	require.Equal(t, a.Rows[0].Key, released.Key)
	require.Equal(t, usage.Released, released.Object.(*usage.Use).State)
}
