package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMinimize looks for sets of parts that are needed, whose number of tries must stay far below that of all subsets.
func TestMinimize(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 0))
	for _, parts := range []int{0, 1, 2, 7, 40, 100} {
		for needed := range min(parts, 5) + 1 {
			t.Run(fmt.Sprintf("%d of %d", needed, parts), func(t *testing.T) {
				t.Parallel()
				wanted := random.Perm(parts)[:needed]
				tries := 0
				without := leaveOutParts(parts, func(without []int) bool {
					tries++
					require.True(t, slices.IsSorted(without))
					return !slices.ContainsFunc(wanted, func(part int) bool { return slices.Contains(without, part) })
				})
				require.Len(t, without, parts-needed)
				require.LessOrEqual(t, tries, 20+3*parts)
			})
		}
	}
}

// Two parts of which either will do: one is left, and no part of a minimal set can go.
func TestMinimizeAlternatives(t *testing.T) {
	t.Parallel()
	without := leaveOutParts(10, func(without []int) bool {
		return !slices.Contains(without, 3) || !slices.Contains(without, 8)
	})
	require.Len(t, without, 9)
	require.NotContains(t, without, 3, "parts at the end go first")
}
