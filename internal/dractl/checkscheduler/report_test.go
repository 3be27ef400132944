package checkscheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Each statement that depends on a feature exists: a renamed one would be judged where it cannot be tried.
func TestFeaturesOfStatements(t *testing.T) {
	t.Parallel()
	all := drajudge.Statements()
	without := newReport("s", "v", 1, story.Features{}, all)
	require.Equal(t, 14, countSkipped(without))
	with := newReport("s", "v", 1, story.Features{
		AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, ConsumableCapacity: true, DeviceTaints: true, BindingConditions: true, ExtendedResources: true,
	}, all)
	require.Zero(t, countSkipped(with))
	require.Len(t, with.Results, len(drajudge.Statements()))
}

func countSkipped(r *Report) int {
	skipped := 0
	for i := range r.Results {
		if r.Results[i].Outcome == "skipped" {
			skipped++
		}
	}
	return skipped
}
