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
	specs, seconds, err := ReadJUnit(file)
	require.NoError(t, err)
	require.InDelta(t, 95.1, seconds, 0)
	require.Equal(t, []Spec{
		{Name: "dra-steady-state: [step: 01] Start measurements [00] - WaitForFinishedJobs", Result: Failed, Message: "[timed out]"},
	}, specs)

	require.NoError(t, os.WriteFile(file, []byte("<testsuite>"), 0o600))
	_, _, err = ReadJUnit(file)
	require.ErrorContains(t, err, file)
	_, _, err = ReadJUnit(file + ".none")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// recorded is what ClusterLoader2 reports and logs of a test without Prometheus.
const (
	recorded = `<testsuite name="ClusterLoaderV2" tests="0" failures="0" errors="0" time="382.2">
    <testcase name="ClusterLoaderV2 dra-steady-state overall (/src/config.yaml)" classname="ClusterLoaderV2" time="382.1"></testcase>
    <testcase name="ClusterLoaderV2 dra-steady-state: [step: 01] Start measurements [00] - WaitForFinishedJobs" classname="ClusterLoaderV2" time="0.1"></testcase>
    <testcase name="ClusterLoaderV2 dra-steady-state: [step: 01] Start measurements [01] - DRALatency" classname="ClusterLoaderV2" time="0"></testcase>
    <testcase name="ClusterLoaderV2 dra-steady-state: [step: 02] Wait for jobs to finish [00] - WaitForFinishedJobs" classname="ClusterLoaderV2" time="382"></testcase>
    <testcase name="ClusterLoaderV2 dra-steady-state: [step: 03] Gather [00] - DRALatency" classname="ClusterLoaderV2" time="0"></testcase>
    <testcase name="ClusterLoaderV2 dra-steady-state: [step: 03] Gather [01] - DRALatency" classname="ClusterLoaderV2" time="0"></testcase>
</testsuite>`
	recordedLog = `I1127 10:00:00.000000       1 simple_test_executor.go:150] Step "[step: 01] Start measurements" started
W1127 10:00:00.000000       1 prometheus_measurement.go:74] DRALatency: Prometheus is disabled, skipping the measurement!
I1127 10:00:00.000000       1 simple_test_executor.go:172] Step "[step: 01] Start measurements" ended
I1127 10:00:00.000000       1 simple_test_executor.go:150] Step "[step: 02] Wait for jobs to finish" started
I1127 10:06:22.000000       1 simple_test_executor.go:172] Step "[step: 02] Wait for jobs to finish" ended
I1127 10:06:22.000000       1 simple_test_executor.go:150] Step "[step: 03] Gather" started
W1127 10:06:22.000000       1 prometheus_measurement.go:74] DRALatency: Prometheus is disabled, skipping the measurement!
W1127 10:06:22.000000       1 prometheus_measurement.go:79] DRALatency: disabled, skipping the measuerment!
`
)

// TestSkippedMeasurements: a step whose measurement was skipped has not passed, and the whole test
// is neither a step nor counted twice in the time.
func TestSkippedMeasurements(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, log := filepath.Join(dir, "junit.xml"), filepath.Join(dir, "load.log")
	require.NoError(t, os.WriteFile(file, []byte(recorded), 0o600))
	require.NoError(t, os.WriteFile(log, []byte(recordedLog), 0o600))
	specs, seconds, err := ReadJUnit(file)
	require.NoError(t, err)
	require.NoError(t, MarkSkipped(specs, log))
	var results []Result
	for _, spec := range specs {
		results = append(results, spec.Result)
	}
	require.Equal(t, []Result{Passed, Skipped, Passed, Skipped, Skipped}, results)
	require.Equal(t, "Prometheus is disabled, skipping the measurement", specs[1].Message)
	var out bytes.Buffer
	require.NoError(t, Table(&out, []*Suite{{Name: "load", Version: "v1", Specs: specs, Seconds: seconds}}))
	require.Contains(t, out.String(), "load v1: 2 of 5 specs passed, 3 skipped in 6m22s\n")

	require.ErrorContains(t, MarkSkipped(specs[:1], log), "measurement DRALatency was skipped, and no step is of it")
	require.ErrorIs(t, MarkSkipped(specs, log+".none"), os.ErrNotExist)
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
