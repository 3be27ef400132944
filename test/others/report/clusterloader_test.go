package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadJUnit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "junit.xml")
	require.NoError(t, os.WriteFile(file, []byte(`<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="ClusterLoaderV2" tests="0" failures="1" errors="0" time="95.5">
    <testcase name="ClusterLoaderV2 dra-steady-state overall (/src/config.yaml)" classname="ClusterLoaderV2" time="95.123"></testcase>
    <testcase name="ClusterLoaderV2 dra-steady-state: [step: 01] Start measurements [00] - WaitForFinishedJobs" classname="ClusterLoaderV2" time="0.01">
        <failure type="">[timed out]</failure>
    </testcase>
</testsuite>`), 0o600))
	specs, err := ReadJUnit(file)
	require.NoError(t, err)
	require.Equal(t, []Spec{
		{Name: "dra-steady-state overall", Result: Passed, Seconds: 95.1},
		{Name: "dra-steady-state: [step: 01] Start measurements [00] - WaitForFinishedJobs", Result: Failed, Message: "[timed out]"},
	}, specs)

	require.NoError(t, os.WriteFile(file, []byte("<testsuite>"), 0o600))
	_, err = ReadJUnit(file)
	require.ErrorContains(t, err, file)
	_, err = ReadJUnit(file + ".none")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadLatencies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"PodStartupLatency_ChurnPodStartupLatency_dra-steady-state_2026-08-07T10:00:00Z.json": `{"version": "1.0", "dataItems": [
			{"data": {"Perc50": 85.7, "Perc90": 300, "Perc99": 621.2}, "unit": "ms", "labels": {"Metric": "pod_startup"}},
			{"data": {"Perc50": 1, "Perc90": 2, "Perc99": 3}, "unit": "ms", "labels": {"Metric": "run_to_watch"}}]}`,
		"StatelessPodStartupLatency_ChurnPodStartupLatency_dra-steady-state_2026-08-07T10:00:00Z.json": `{`,
		"ResourceClaimAllocationLatency_ChurnClaimAllocationLatency_dra-steady-state_2026-08-07T10:00:00Z.json": `{"dataItems": [
			{"data": {"Perc50": 4, "Perc90": 5, "Perc99": 6}, "unit": "ms", "labels": {"Metric": "claim_allocation"}}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	measures, err := ReadLatencies(dir)
	require.NoError(t, err)
	require.Equal(t, []Measure{
		{"pod startup in Churn, p50", 86, "ms"},
		{"pod startup in Churn, p90", 300, "ms"},
		{"pod startup in Churn, p99", 621, "ms"},
		{"claim allocation in Churn, p50", 4, "ms"},
		{"claim allocation in Churn, p90", 5, "ms"},
		{"claim allocation in Churn, p99", 6, "ms"},
	}, measures)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "PodStartupLatency_x_y.json"), []byte("{"), 0o600))
	_, err = ReadLatencies(dir)
	require.ErrorContains(t, err, "PodStartupLatency_x_y.json")
}

func TestSkippedSuite(t *testing.T) {
	t.Parallel()
	skipped := &Suite{Name: "load", Skipped: "since it needs a checkout:\n  git clone"}
	require.False(t, skipped.Bad())
	measured := &Suite{
		Name: "other", Version: "v2", Kubernetes: "1.36.3",
		Specs:    []Spec{{Name: "fills", Result: Passed, Seconds: 3}},
		Measures: []Measure{{"CPU time of etcd", 1.5, "s"}},
	}
	var out bytes.Buffer
	require.NoError(t, Table(&out, []*Suite{skipped, measured}))
	require.Equal(t, `SUITE  VERSION  SPEC   RESULT
load                   skipped
other  v2       fills  passed

load: skipped, since it needs a checkout:
  git clone

CPU time of etcd: 1.5 s
other v2 on Kubernetes 1.36.3: 1 of 1 specs passed in 3s
`, out.String())
}
