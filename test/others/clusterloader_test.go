package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/others/report"
)

func TestNodeCount(t *testing.T) {
	for value, want := range map[string]int{"": 10, "100": 100} {
		t.Setenv(nodesVariable, value)
		count, err := nodeCount()
		require.NoError(t, err)
		require.Equal(t, want, count)
	}
	for _, value := range []string{"0", "ten"} {
		t.Setenv(nodesVariable, value)
		_, err := nodeCount()
		require.EqualError(t, err, "read NUM_NODES="+value+": want the number of nodes, at least 1")
	}
}

func TestNodeList(t *testing.T) {
	t.Parallel()
	items := nodeList(2)["items"].([]any)
	require.Len(t, items, 2)
	require.Equal(t, "node-1", items[1].(map[string]any)["metadata"].(map[string]any)["name"])
}

func TestSpent(t *testing.T) {
	t.Parallel()
	before := map[string]time.Duration{"kwok-dra": time.Second, "etcd": 2 * time.Second}
	after := map[string]time.Duration{"kwok-dra": 2340 * time.Millisecond, "etcd": 2 * time.Second}
	require.Equal(t, []report.Measure{
		{Name: "CPU time of etcd", Value: 0, Unit: "s"},
		{Name: "CPU time of kwok-dra", Value: 1.3, Unit: "s"},
	}, spent(before, after))
}

func TestStageFiles(t *testing.T) {
	t.Parallel()
	require.Contains(t, (&suite{}).stageFiles("/kwok"), "/kwok/kustomize/stage/pod/fast/pod-complete.yaml")
	delayed := clusterLoader.stageFiles("/kwok")
	require.NotContains(t, delayed, "/kwok/kustomize/stage/pod/fast/pod-complete.yaml")
	require.FileExists(t, delayed[len(delayed)-2])
	require.FileExists(t, delayed[len(delayed)-1])
}
