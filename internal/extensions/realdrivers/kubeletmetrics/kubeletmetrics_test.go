package kubeletmetrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := New()
	m.recordOperation(prepareResources, 50*time.Millisecond, false)
	m.recordOperation(prepareResources, time.Second, true)
	m.Call("d", methodPrefix+prepareResources, "OK", 50*time.Millisecond)
	m.CountInUse(func() (map[string]int, int) { return map[string]int{"d": 2, "e": 1}, 2 })
	problems, err := testutil.CollectAndLint(m)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP dra_resource_claims_in_use ResourceClaims that are prepared on fake nodes now, by driver; <any> counts each once.
# TYPE dra_resource_claims_in_use gauge
dra_resource_claims_in_use{driver_name="<any>"} 2
dra_resource_claims_in_use{driver_name="d"} 2
dra_resource_claims_in_use{driver_name="e"} 1
`), "dra_resource_claims_in_use"))
	require.Equal(t, 2, testutil.CollectAndCount(m, "dra_operations_duration_seconds"))
	require.Equal(t, 1, testutil.CollectAndCount(m, "dra_grpc_operations_duration_seconds"))
}

// TestNil counts nothing.
func TestNil(t *testing.T) {
	t.Parallel()
	var m *Metrics
	m.Call("d", methodPrefix+prepareResources, "OK", time.Second)
	m.CountInUse(func() (map[string]int, int) { return nil, 0 })
}
