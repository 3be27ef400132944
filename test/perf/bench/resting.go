package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// resting measures what the sidecar does while nothing happens but kwok's
// heartbeats.
type resting struct {
	*world

	before, after observation
}

// observation is what there is to see of a running sidecar.
type observation struct {
	at         time.Time
	cpu        time.Duration
	writes     float64
	nodeEvents int
	memory     int64
}

func newResting(w *world) part {
	r := &resting{world: w}
	return part{
		title: fmt.Sprintf("Watching %d nodes heartbeat for %s", w.nodes, w.rest),
		run:   r.run,
		print: r.print,
		takes: 20*time.Second + w.rest,
	}
}

func (r *resting) run(ctx context.Context) error {
	if err := r.playHeartbeats(ctx); err != nil {
		return err
	}
	process, err := r.publishedBy(ctx, fleet.Template)
	if err != nil {
		return err
	}
	if err := fleet.Pause(ctx, 5*time.Second); err != nil {
		return err
	}
	if r.before, err = r.observeRest(ctx, process); err != nil {
		return err
	}
	if err := fleet.Pause(ctx, r.rest); err != nil {
		return err
	}
	if r.after, err = r.observeRest(ctx, process); err != nil {
		return err
	}
	return process.Stop()
}

func (r *resting) observeRest(ctx context.Context, process *sidecar.Process) (observation, error) {
	o := observation{at: time.Now(), nodeEvents: r.events.Nodes()}
	var err error
	if o.cpu, err = process.CPUTime(); err != nil {
		return o, err
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		count, err := process.Metric(ctx, "rest_client_requests_total", `method="`+method+`"`)
		if err != nil {
			return o, err
		}
		o.writes += count
	}
	o.memory, err = process.ResidentMemory()
	return o, err
}

func (r *resting) print(out io.Writer) {
	seconds := r.after.at.Sub(r.before.at).Seconds()
	heartbeats := float64(r.after.nodeEvents-r.before.nodeEvents) / seconds
	fmt.Fprintf(out, "\n%d published nodes, %.0f heartbeats per second for %s\n\tkwok-dra\taim\n", r.nodes, heartbeats, r.rest)
	fmt.Fprintf(out, "CPU, %% of a core\t%.2f\t< 2\n", 100*(r.after.cpu-r.before.cpu).Seconds()/seconds)
	fmt.Fprintf(out, "writes\t%.0f\t0\n", r.after.writes-r.before.writes)
	fmt.Fprintf(out, "resident memory, MiB\t%d\t\n", r.after.memory/sidecar.MiB)
}
