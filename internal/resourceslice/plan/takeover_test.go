package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
)

// TestTakeOver: a plan asks for the slices that it lacks, and for as many as the pool once
// had. Then it goes on from the newest generation of all.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	node, pool := fakeNode("n", true), poolOf("p", 1, 1)
	larger := poolOf("p", 1, 1, 1)
	stored := map[string]*resourcev1.ResourceSlice{}
	var names []string
	for _, slice := range slicesOf(t, node, &larger) {
		slice.Spec.Pool.Generation = 7
		stored[slice.Name] = slice
		names = append(names, slice.Name)
	}
	first, err := New("", node, fitted(pool), nil)
	require.NoError(t, err)
	require.Equal(t, "create 0@1/2, create 1@1/2", summary(first.Writes))

	live := map[string]*resourcev1.ResourceSlice{}
	var asked [][]string
	next, err := first.TakeOver(live)
	for ; err == nil && next.Need != nil; next, err = first.TakeOver(live) {
		require.True(t, next.IsEmpty(), "nothing is written before all is read")
		asked = append(asked, next.Need.Slices)
		for _, name := range next.Need.Slices {
			live[name] = stored[name]
		}
	}
	require.NoError(t, err)
	require.Len(t, asked, 2)
	require.Equal(t, names, asked[0], "the two of the pool, and the one after")
	require.Len(t, asked[1], 1, "until one does not exist")
	require.Equal(t, "delete 2, update 0@8/2, update 1@8/2", summary(next.Writes))
}
