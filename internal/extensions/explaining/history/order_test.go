package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestOrderFractions has two steps of a second in the order of their fractions,
// and not of their ranks.
func TestOrderFractions(t *testing.T) {
	t.Parallel()
	early, late := start.Add(time.Millisecond), start.Add(time.Minute)
	steps := []Step{
		{What: "no time", rank: rankReserved},
		{What: "bound", Time: new(start.Add(2 * time.Millisecond)), rank: rankBound},
		{What: "allocated", Time: &start, rank: rankAllocated},
		{What: "waits", Time: &early, Object: "Pod", rank: rankWaiting},
		{What: "other Pod", Time: &late, Object: "Pod", rank: rankPodCreated},
	}
	orderSteps(steps)
	var names []string
	for i := range steps {
		names = append(names, steps[i].What)
	}
	require.Equal(t, []string{"allocated", "no time", "waits", "bound", "other Pod"}, names)
}
