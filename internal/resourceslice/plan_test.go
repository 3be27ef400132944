package resourceslice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestPlan: what it makes is what a Publisher writes.
func TestPlan(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		documents := template("a", "d", divided) + template("b", "e", tainted) + sharedTemplate("net", "", "{name: nic}")
		node := fakeNode("n", true)
		w := newWorld(t, "", node)
		w.off = []string{"DRADeviceTaints"}
		configtest.Replace(t, w.store, documents)
		w.wrote("dry-run 2, create 4")

		pools := rendered(t, w.store, node)
		shared, err := w.store.Current().Shared()[0].NewSharedPool()
		require.NoError(t, err)
		prober := NewProber(w.server)
		for range 2 {
			fitted := fit(t, prober, append(pools, *shared))
			needs, err := plan.New("", node, &fitted, nil)
			require.NoError(t, err)
			want := map[string]facts.Content{}
			for _, slice := range w.list(t) {
				want[slice.Name] = facts.ContentOf(&slice.Spec)
			}
			got := map[string]facts.Content{}
			for _, slice := range needs.Create {
				require.EqualValues(t, 1, slice.Spec.Pool.Generation)
				got[slice.Name] = facts.ContentOf(&slice.Spec)
			}
			require.Equal(t, want, got)
			require.Len(t, fitted.Dropped, 1)
			require.Equal(t, "b taints", fitted.Dropped[0].Source+" "+fitted.Dropped[0].Field.Name)
		}
	})
}

// TestPlanRefuses: as the Publisher does, what cannot be laid out.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	s := newServer()
	store, node := storeOf(t, template("a", "d", "{name: gpu, count: 70, attributes: {l: ['{{ .Index }}']}}")+"  slices: [{devices: [gpu]}]\n"), fakeNode("n", true)
	fitted := fit(t, NewProber(s), rendered(t, store, node))
	_, err := plan.New("", node, &fitted, nil)
	require.ErrorContains(t, err, "at most 64 are possible")
}
