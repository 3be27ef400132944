package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// heartbeat is kwok's Stage for nodes without leases. Each node heartbeats every
// 20 to 25 s by it; by its Stage for nodes with leases every 10 minutes.
const (
	heartbeatStage    = "node-heartbeat"
	heartbeatInterval = 22500 * time.Millisecond
	leasedInterval    = 10 * time.Minute
)

// measureRest starts a sidecar where all is done, and watches it while the nodes
// only heartbeat.
func (w *world) measureRest(ctx context.Context, length time.Duration, f *figures) error {
	fmt.Fprintln(os.Stderr, "  Starting again ...")
	process, err := w.startSidecar(ctx)
	if err != nil {
		return err
	}
	if err := w.awaitIdle(ctx, process); err != nil {
		return err
	}
	if f.Restart.Writes, err = countWrites(ctx, process); err != nil {
		return err
	}
	if f.Memory.Restarted, err = process.ResidentMemory(); err != nil {
		return err
	}
	if err := w.measureHeartbeats(ctx, process, length, f); err != nil {
		return err
	}
	if err := f.Memory.sawPeak(process); err != nil {
		return err
	}
	return process.Stop()
}

func (w *world) measureHeartbeats(ctx context.Context, process *sidecar.Process, length time.Duration, f *figures) error {
	fmt.Fprintf(os.Stderr, "  Watching %d nodes heartbeat for %s ...\n", w.nodes, length)
	if err := fleet.ApplyKwokStage(ctx, w.cluster, "node/heartbeat/node-heartbeat.yaml"); err != nil {
		return err
	}
	w.events.Forget()
	if err := fleet.RestartKwok(ctx, w.cluster); err != nil {
		return err
	}
	if err := w.firstHeartbeats(ctx); err != nil {
		return err
	}
	// The metrics are asked for where their cost to the sidecar is not counted.
	wrote, err := countWrites(ctx, process)
	if err != nil {
		return err
	}
	before, err := w.observeProcess(process)
	if err != nil {
		return err
	}
	if err := fleet.Pause(ctx, length); err != nil {
		return err
	}
	after, err := w.observeProcess(process)
	if err != nil {
		return err
	}
	f.Rest.addWatched(before, after)
	total, err := countWrites(ctx, process)
	if err != nil {
		return err
	}
	f.Rest.Writes = total - wrote
	if _, err := w.cluster.Kubectl(ctx, "delete", "stage", heartbeatStage); err != nil {
		return err
	}
	return fleet.RestartKwok(ctx, w.cluster)
}

// firstHeartbeats waits until each node has had one. That gives its conditions
// another lastTransitionTime, and is the only one that changes more than times.
func (w *world) firstHeartbeats(ctx context.Context) error {
	const limit = 15 * time.Minute
	start := time.Now()
	for told := start; w.events.Touched() < w.nodes; {
		if time.Since(start) > limit {
			return fmt.Errorf("wait for heartbeats: %d of %d nodes have had one after %s", w.events.Touched(), w.nodes, limit)
		}
		if err := fleet.Pause(ctx, time.Second); err != nil {
			return err
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			printProgress("nodes have had a heartbeat", w.events.Touched(), w.nodes)
		}
	}
	return nil
}

// observation is what there is to see of a running sidecar.
type observation struct {
	at         time.Time
	cpu        time.Duration
	heartbeats int
}

func (w *world) observeProcess(process *sidecar.Process) (observation, error) {
	o := observation{at: time.Now(), heartbeats: w.events.Nodes()}
	var err error
	o.cpu, err = process.CPUTime()
	return o, err
}

// countWrites counts the requests of a sidecar that are not for reading.
func countWrites(ctx context.Context, process *sidecar.Process) (int, error) {
	sum := 0.0
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		count, err := process.Metric(ctx, "rest_client_requests_total", `method="`+method+`"`)
		if err != nil {
			return 0, err
		}
		sum += count
	}
	return int(sum), nil
}
