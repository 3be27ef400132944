package publish

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

var rolledNodes = flag.Int("rolled-nodes", 100, "nodes with a driver Pod that TestRollingUpdate replaces, at least 40")

// TestRollingUpdate replaces the driver Pods of a tenth of the nodes at a time. Some new ones
// take so long to start that the kubelet wipes the slices, and others not quite so long. Pools
// have two slices, which are not written at once.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	long, short := slowStage(t, "long", 40*time.Second, 0), slowStage(t, "short", 10*time.Second, 1)
	h := harness.New(t, cluster.Options{Audit: true, Config: append(harness.FastStages(t), long, short)})
	h.Sidecar()
	h.Configure("large", strings.Replace(chart, "count: 8", "count: 130", 1))
	h.CreateNodes("gpu", *rolledNodes)
	driver := release{h, "rolled", "rolled.example.com"}
	seen := record(driver)
	driver.install("gpu")
	seen.wait("v1", *rolledNodes)
	driver.upgrade("v2")
	seen.wait("v2", *rolledNodes)
	seen.check()
}

// slowStage is pod-ready with a delay, for the Pods of v2 on every 20th node from the first.
func slowStage(t *testing.T, name string, delay time.Duration, first int) string {
	t.Helper()
	var nodes []string
	for i := first; i < *rolledNodes; i += 20 {
		nodes = append(nodes, fmt.Sprintf("gpu-%d", i))
	}
	stage, err := os.ReadFile(harness.StageFiles(t, "pod/fast")[0])
	require.NoError(t, err)
	slow := strings.NewReplacer(
		"name: pod-ready\n", "name: pod-ready-"+name+"\n",
		"    matchExpressions:\n", fmt.Sprintf(`    matchExpressions:
    - {key: .spec.nodeName, operator: In, values: [%s]}
    - {key: ".spec.containers[].image", operator: In, values: ["example.com/plugin:v2"]}
`, strings.Join(nodes, ", ")),
		"  next:\n", fmt.Sprintf("  weight: 1\n  delay: {durationMilliseconds: %d}\n  next:\n", delay.Milliseconds()),
	).Replace(string(stage))
	file := filepath.Join(t.TempDir(), name+".yaml")
	require.NoError(t, os.WriteFile(file, []byte(slow), 0o600))
	return file
}
