package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/others/report"
)

var perfTests = origin{
	module: "k8s.io/perf-tests/clusterloader2",
	folder: "clusterloader2",
	url:    "https://github.com/kubernetes/perf-tests",
	commit: "4b3415444f4c",
}

// The load test of DRA, with claims and with extended resources.
var (
	clusterLoader         = loadTest("clusterloader2", "claims")
	clusterLoaderExtended = loadTest("clusterloader2-extended-resources", "extended resources", "CL2_ENABLE_EXTENDED_RESOURCES=true")
)

// loadTest is testing/dra of ClusterLoader2 with what its Pods ask for devices by, and with its parameters as variables.
func loadTest(name, with string, parameters ...string) suite {
	const unlimited = "99999"
	client := []string{"kube-api-qps=" + unlimited, "kube-api-burst=" + unlimited}
	return suite{
		name:   name,
		title:  "[ClusterLoader2](#clusterloader2), steps of `testing/dra` with " + with + ", [from a checkout](#run-them)",
		origin: &perfTests,
		cluster: cluster.Options{
			FeatureGates: switchOn("DRAExtendedResource"),
			// Else they measure how long clients wait for their own limits.
			ExtraArgs: map[string][]string{
				cluster.APIServer:         {"max-requests-inflight=0", "max-mutating-requests-inflight=0", "enable-priority-and-fairness=false"},
				cluster.ControllerManager: client,
				cluster.Scheduler:         client,
			},
		},
		complete: filepath.Join("clusterloader2", "stages", "pod-complete.yaml"),
		install:  makeNodes,
		load: func(ctx context.Context, r *runner, s suite) (player, error) {
			program, err := s.checkout.EnsureCommand(ctx, perfTests.module+"/cmd", os.Stderr)
			return func(w *world, result *report.Suite) error {
				return r.loadCluster(ctx, w, program, parameters, result)
			}, err
		},
	}
}

// nodesVariable is the one by which ClusterLoader2 itself is told how many nodes there are.
const nodesVariable = "NUM_NODES"

func nodeCount() (int, error) {
	value := os.Getenv(nodesVariable)
	if value == "" {
		return 10, nil
	}
	count, err := strconv.Atoi(value)
	if err != nil || count < 1 {
		return 0, fmt.Errorf("read %s=%s: want the number of nodes, at least 1", nodesVariable, value)
	}
	return count, nil
}

// makeNodes returns when all nodes are Ready.
func makeNodes(ctx context.Context, w *world) (*installation, error) {
	count, err := nodeCount()
	if err != nil {
		return nil, err
	}
	nodes, err := json.Marshal(nodeList(count))
	if err != nil {
		return nil, fmt.Errorf("encode nodes: %w", err)
	}
	if _, err := w.KubectlInput(ctx, strings.NewReader(string(nodes)), "create", "-f", "-"); err != nil {
		return nil, err
	}
	_, err = w.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=2m", "nodes", "--all")
	return &installation{}, err
}

func nodeList(count int) map[string]any {
	var items []any
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		items = append(items, map[string]any{
			"apiVersion": "v1",
			"kind":       "Node",
			"metadata": map[string]any{
				"name":        name,
				"labels":      map[string]string{"kubernetes.io/hostname": name, "dra.kwok.x-k8s.io/profile": "gpu-example"},
				"annotations": map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
		})
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// loadCluster runs the load test. Its results are what it reports of its steps, what it has
// measured, and what CPU time it took.
func (r *runner) loadCluster(ctx context.Context, w *world, program string, parameters []string, result *report.Suite) error {
	count, err := nodeCount()
	if err != nil {
		return err
	}
	reports := filepath.Join(r.logs, result.Name)
	if err := os.RemoveAll(reports); err != nil {
		return fmt.Errorf("remove reports of an earlier run: %w", err)
	}
	before, err := w.usage()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "--kubeconfig="+w.Kubeconfig(), "--provider=local", "--enable-prometheus-server=false",
		"--nodes="+strconv.Itoa(count), "--port="+strconv.Itoa(w.SparePort()), "--report-dir="+reports, "--v=2",
		"--testconfig="+filepath.Join(w.suite.checkout.Dir, "testing", "dra", "config.yaml"))
	cmd.Dir = w.suite.checkout.Dir
	if err := runAlone(cmd, result.Log, parameters...); err != nil {
		return err
	}
	after, err := w.usage()
	if err != nil {
		return err
	}
	if result.Specs, result.Seconds, err = report.ReadJUnit(filepath.Join(reports, "junit.xml")); err != nil {
		return err
	}
	if err := report.MarkSkipped(result.Specs, result.Log); err != nil {
		return err
	}
	if result.Measures, err = report.ReadLatencies(reports); err != nil {
		return err
	}
	result.Measures = append(result.Measures, spent(before, after)...)
	return nil
}

// usage is the CPU time that each process of the cluster has taken so far.
func (w *world) usage() (map[string]time.Duration, error) {
	pids, err := w.ComponentPIDs()
	if err != nil {
		return nil, err
	}
	pids["kwok-dra"] = w.sidecar.PID()
	return sidecar.CPUTimesOf(pids)
}

// spent is the CPU time of each process between two readings.
func spent(before, after map[string]time.Duration) []report.Measure {
	var all []report.Measure
	for _, name := range slices.Sorted(maps.Keys(after)) {
		took := (after[name] - before[name]).Round(100 * time.Millisecond)
		all = append(all, report.Measure{Name: "CPU time of " + name, Value: took.Seconds(), Unit: "s"})
	}
	return all
}
