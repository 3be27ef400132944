package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// figures are what a turn has measured.
type figures struct {
	*record

	machine         string
	nodes, podCount int
	// values are by the titles of metrics.
	values map[string]float64
}

// The figures of a turn by their titles.
const (
	driverWatches  = "watches of slices, per node"
	allWatches     = "watches of kubelets and drivers, per node"
	startCPU       = "CPU of the API server, ms per node that starts"
	restCPU        = "CPU of the API server at rest, ms per node and minute"
	podCPU         = "CPU of the API server, ms per Pod"
	nodeHeap       = "heap of the API server after collections, KiB per node"
	resident       = "resident memory of the API server, MiB"
	residentGrowth = "resident memory of the API server, MiB more than without nodes"
	sidecarMemory  = "resident memory of kwok-dra, MiB"
	sidecarRestCPU = "CPU of kwok-dra at rest, % of a core"
	sidecarPodCPU  = "CPU of kwok-dra, ms per Pod"
	lateRequests   = "late requests"
	longestLag     = "longest lag, ms"
)

// usage is what processes took while something was done.
type usage struct {
	took time.Duration
	cpu  map[string]time.Duration
}

// use returns what is used while something is done.
func (t *turn) use(do func() error) (u usage, err error) {
	before, err := sidecar.CPUTimesOf(t.pids)
	if err != nil {
		return u, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return u, err
	}
	if u.cpu, err = sidecar.CPUTimesOf(t.pids); err != nil {
		return u, err
	}
	u.took = time.Since(began)
	for name, cpu := range before {
		u.cpu[name] -= cpu
	}
	return u, nil
}

// load is what the API server holds.
type load struct{ heap, resident, watches, sliceWatches float64 }

func (t *turn) readLoad(ctx context.Context) (l load, err error) {
	read := func(path string, parameters map[string]string) string {
		request := t.client.CoreV1().RESTClient().Get().AbsPath(path)
		for name, value := range parameters {
			request = request.Param(name, value)
		}
		body, failed := request.DoRaw(ctx)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("read %s of the API server: %w", path, failed))
		}
		return string(body)
	}
	metrics, profile := read("/metrics", nil), ""
	for range 3 { // pools of buffers survive a collection
		profile = read("/debug/pprof/heap", map[string]string{"gc": "1", "debug": "1"})
	}
	if err != nil {
		return l, err
	}
	const watches = "apiserver_longrunning_requests"
	l.watches = sidecar.SumMetric(metrics, watches, `verb="WATCH"`)
	l.sliceWatches = sidecar.SumMetric(metrics, watches, `verb="WATCH"`, `resource="resourceslices"`)
	heap, err := sidecar.HeapIn(profile)
	if err != nil {
		return l, err
	}
	bytes, err := sidecar.ResidentMemoryOf(t.pids[cluster.APIServer])
	l.heap, l.resident = float64(heap), float64(bytes)
	return l, err
}

// measure has nodes start, rest, and run Pods.
func (t *turn) measure(ctx context.Context) (*figures, error) {
	empty, err := t.readLoad(ctx)
	if err != nil {
		return nil, err
	}
	created, err := t.use(func() error { return t.createNodes(ctx) })
	if err != nil {
		return nil, err
	}
	if err := t.writeKubeconfigs(ctx); err != nil {
		return nil, err
	}
	started, err := t.use(func() error { return t.startDrivers(ctx) })
	if err != nil {
		return nil, err
	}
	full, err := t.readLoad(ctx)
	if err != nil {
		return nil, err
	}
	rested, err := t.use(func() error { return fleet.Pause(ctx, t.rest) })
	if err != nil {
		return nil, err
	}
	if err := t.preparePods(ctx); err != nil {
		return nil, err
	}
	podsFrom := time.Now()
	played, err := t.use(func() error { return t.playPods(ctx) })
	if err != nil {
		return nil, err
	}
	f := &figures{machine: fleet.Machine(t.cluster), nodes: t.nodes, podCount: t.pods, values: map[string]float64{}}
	if err := t.readSidecar(ctx, f); err != nil {
		return nil, err
	}
	// A watch is in the audit log when it has ended.
	if err := errors.Join(t.stop(), t.awaitQuiet(ctx)); err != nil {
		return nil, err
	}
	if f.record, err = readRecord(t.cluster, podsFrom); err != nil {
		return nil, err
	}
	nodes, pods, minutes := float64(t.nodes), float64(max(1, t.pods)), rested.took.Minutes()
	// Of Pods counts what is used more than at rest.
	ofPods := func(process string) float64 {
		atRest := pairs.Milliseconds(rested.cpu[process]) * played.took.Seconds() / rested.took.Seconds()
		return (pairs.Milliseconds(played.cpu[process]) - atRest) / pods
	}
	f.values[driverWatches] = (full.sliceWatches - empty.sliceWatches) / nodes
	f.values[allWatches] = (full.watches - empty.watches) / nodes
	f.values[startCPU] = pairs.Milliseconds(created.cpu[cluster.APIServer]+started.cpu[cluster.APIServer]) / nodes
	f.values[restCPU] = pairs.Milliseconds(rested.cpu[cluster.APIServer]) / nodes / minutes
	f.values[podCPU] = ofPods(cluster.APIServer)
	f.values[nodeHeap] = (full.heap - empty.heap) / nodes / 1024
	f.values[resident] = full.resident / sidecar.MiB
	f.values[residentGrowth] = (full.resident - empty.resident) / sidecar.MiB
	f.values[sidecarRestCPU] = 100 * rested.cpu[sidecarName].Seconds() / rested.took.Seconds()
	f.values[sidecarPodCPU] = ofPods(sidecarName)
	return f, nil
}

func (t *turn) readSidecar(ctx context.Context, f *figures) error {
	bytes, err := t.sidecar.ResidentMemory()
	if err != nil {
		return err
	}
	f.values[sidecarMemory] = float64(bytes) / sidecar.MiB
	body, err := t.sidecar.Get(ctx, "/metrics")
	if err != nil {
		return fmt.Errorf("read the metrics of kwok-dra: %w", err)
	}
	f.values[lateRequests] = sidecar.SumMetric(string(body), "kwok_dra_node_load_late_requests_total")
	f.values[longestLag] = 1000 * sidecar.SumMetric(string(body), "kwok_dra_node_load_lag_seconds", `component="kubelet"`)
	return nil
}

// stop ends drivers before kwok-dra, which acts as their kubelets.
func (t *turn) stop() error {
	if t.hasReal {
		if err := t.drivers.Stop(); err != nil {
			return err
		}
	}
	return t.sidecar.Stop()
}
