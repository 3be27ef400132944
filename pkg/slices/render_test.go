package slices

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRenderer: what it makes is what a Publisher writes.
func TestRenderer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		documents := template("a", "d", divided) + template("b", "e", tainted) + sharedTemplate("net", "", "{name: nic}")
		node := fakeNode("n", true)
		w := newWorld(t, "", node)
		w.off = []string{"DRADeviceTaints"}
		replace(t, w.store, documents)
		w.wrote("dry-run 2, create 4")

		var dropped []string
		renderer := NewRenderer(w.server, func(template, field string) { dropped = append(dropped, template+" "+field) })
		pools := rendered(t, w.store, node)
		shared, err := w.store.Current().Shared()[0].NewSharedPool()
		require.NoError(t, err)
		for range 2 {
			made, err := renderer.Slices(t.Context(), node, append(pools, *shared))
			require.NoError(t, err)
			want := map[string]Content{}
			for _, slice := range w.list(t) {
				want[slice.Name], _ = ContentOf(&slice.Spec)
			}
			got := map[string]Content{}
			for _, slice := range made {
				require.EqualValues(t, 1, slice.Spec.Pool.Generation)
				got[slice.Name], _ = ContentOf(&slice.Spec)
			}
			require.Equal(t, want, got)
		}
		require.Equal(t, []string{"b taints"}, dropped)
	})
}

// TestRendererRefuses: as the Publisher does, what cannot be laid out.
func TestRendererRefuses(t *testing.T) {
	t.Parallel()
	s := newServer()
	store, node := storeOf(t, template("a", "d", "{name: gpu, count: 70, attributes: {l: ['{{ .Index }}']}}")+"  slices: [{devices: [gpu]}]\n"), fakeNode("n", true)
	_, err := NewRenderer(s, nil).Slices(t.Context(), node, rendered(t, store, node))
	require.ErrorContains(t, err, "at most 64 are possible")
}
