package kubectldra

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/claims"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/devices"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/nodes"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/overview"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/pods"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// TestWatchHasNoMemoryBudget: what a watch keeps alive grows with the cluster. It sets what the whole process has, so it is
// not parallel.
func TestWatchHasNoMemoryBudget(t *testing.T) {
	defer reading.ResetMemoryBudget()
	commands := map[string]worldtest.Command{"claims": claims.New, "devices": devices.New, "nodes": nodes.New, "overview": overview.New, "pods": pods.New}
	for _, name := range watching(t) {
		reading.SetMemoryBudget()
		worldtest.New(t, worldtest.PodsAndClaims()).Run(commands[name])
		require.NotEqual(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1), "%s without -w", name)
		synctest.Test(t, func(t *testing.T) {
			_, _, end := worldtest.New(t, worldtest.PodsAndClaims()).Watch(commands[name])
			time.Sleep(time.Minute)
			require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1), "%s -w", name)
			require.NoError(t, end())
		})
	}
}
