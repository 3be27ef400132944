package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/fleet"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// report collects the figures of a run.
type report struct {
	sidecar, raw, stage way
	slices              []resourcev1.ResourceSlice
	publishCPU          time.Duration
	// prepare is of Pods per second, schedule of whole runs.
	prepare struct {
		comparison
		cpu    time.Duration
		memory int64
	}
	schedule comparison
	rest     struct {
		cpu, heartbeats float64
		writes          float64
		memory          int64
	}
}

// comparison is of the ways of doing something.
type comparison struct {
	sidecar, raw, stage way
}

func (c *comparison) lastRates(count int) string {
	last := func(w way) float64 { return float64(count) / w.rates[len(w.rates)-1].Seconds() }
	return fmt.Sprintf("kwok-dra %.0f, raw writer %.0f", last(c.sidecar), last(c.raw))
}

// way is one way of publishing.
type way struct {
	// rates are the times that publishing the fleet took.
	rates     []time.Duration
	latencies []time.Duration
}

// at returns the latency that a share of all, such as 0.5, stay below.
func (w way) at(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(w.latencies))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func (w way) rate(nodes int) float64 {
	sorted := slices.Sorted(slices.Values(w.rates))
	return float64(nodes) / sorted[len(sorted)/2].Seconds()
}

// ratio is the median of the rounds' ratios: within a round the machine's speed
// drifts less than between rounds.
func (w way) ratio(to way) float64 {
	ratios := make([]float64, len(w.rates))
	for i := range ratios {
		ratios[i] = to.rates[i].Seconds() / w.rates[i].Seconds()
	}
	slices.Sort(ratios)
	return (ratios[(len(ratios)-1)/2] + ratios[len(ratios)/2]) / 2
}

func (r *report) lastRates() string {
	last := func(w way) string {
		return fmt.Sprintf("%.0f", float64(len(r.slices))/w.rates[len(w.rates)-1].Seconds())
	}
	return fmt.Sprintf("kwok-dra %s, raw writer %s, Stage %s", last(r.sidecar), last(r.raw), last(r.stage))
}

// observation is what there is to see of a running sidecar.
type observation struct {
	at         time.Time
	cpu        time.Duration
	writes     float64
	nodeEvents int
	memory     int64
}

func (b *bench) observe(ctx context.Context, process *sidecar.Process) (observation, error) {
	o := observation{at: time.Now(), nodeEvents: b.events.Nodes()}
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

func (r *report) resting(before, after observation) {
	seconds := after.at.Sub(before.at).Seconds()
	r.rest.cpu = (after.cpu - before.cpu).Seconds() / seconds
	r.rest.writes = after.writes - before.writes
	r.rest.heartbeats = float64(after.nodeEvents-before.nodeEvents) / seconds
	r.rest.memory = after.memory
}

func (r *report) print(b *bench) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer func() { _ = out.Flush() }()
	if b.only != "claims" {
		r.printSlices(out, b)
	}
	if b.only != "slices" {
		r.printClaims(out, b)
	}
	fmt.Fprintf(out, "\n%s\n", fleet.Machine(b.cluster))
}

func (r *report) printSlices(out *tabwriter.Writer, b *bench) {
	rate, raw, stage := r.sidecar.rate(b.nodes), r.raw.rate(b.nodes), r.stage.rate(b.nodes)
	fmt.Fprintf(out, "\n%d nodes x %d devices x %d attributes, %d workers; rates and ratios are medians of %d rounds\n", b.nodes,
		len(r.slices[0].Spec.Devices), len(r.slices[0].Spec.Devices[0].Attributes), fleet.Workers, b.rounds)
	fmt.Fprintln(out, "\tkwok-dra\traw writer\tkwok Stage\tto raw writer\tto Stage\taim")
	fmt.Fprintf(out, "cold publish, slices/s\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t>= 0.95 of raw writer, > Stage\n", rate, raw, stage,
		r.sidecar.ratio(r.raw), r.sidecar.ratio(r.stage))
	for _, share := range []float64{0.5, 0.95} {
		mine, theirs := r.sidecar.at(share), r.stage.at(share)
		fmt.Fprintf(out, "new node Ready to slice, p%.0f, ms\t%.1f\t\t%.1f\t\t%.2f\t%s\n", share*100,
			milliseconds(mine), milliseconds(theirs), float64(mine)/float64(theirs),
			map[bool]string{true: "<= 50 ms, <= Stage", false: "<= Stage"}[share == 0.5])
	}
	fmt.Fprintf(out, "heartbeats only: CPU, %% of a core\t%.2f\t\t\t\t\t< 2 (%.0f heartbeats/s)\n", 100*r.rest.cpu, r.rest.heartbeats)
	fmt.Fprintf(out, "heartbeats only: writes\t%.0f\t\t\t\t\t0\n", r.rest.writes)
	fmt.Fprintf(out, "resident memory, MiB\t%d\t\t\t\t\t\n", r.rest.memory/sidecar.MiB)
	fmt.Fprintf(out, "CPU to start and publish the fleet, s\t%.2f\t\t\t\t\t\n", r.publishCPU.Seconds())
}

func (r *report) printClaims(out *tabwriter.Writer, b *bench) {
	fmt.Fprintf(out, "\n%d Pods with a claim of one device each, one on each node; %d Pods through the scheduler; medians of %d rounds\n", b.nodes, b.scheduled, b.rounds)
	fmt.Fprintln(out, "\tkwok-dra\traw writer\tstock kwok\tratio\taim")
	prepare := &r.prepare
	fmt.Fprintf(out, "prepare, Pods/s\t%.0f\t%.0f\t\t%.2f\t>= 0.9 of raw writer\n", prepare.sidecar.rate(b.nodes), prepare.raw.rate(b.nodes), prepare.sidecar.ratio(prepare.raw))
	fmt.Fprintf(out, "bound to PodReadyToStartContainers, p50, ms\t%.1f\t\t\t\t<= 50 ms\n", milliseconds(prepare.sidecar.at(0.5)))
	fmt.Fprintf(out, "bound to PodReadyToStartContainers, p95, ms\t%.1f\t\t\t\t\n", milliseconds(prepare.sidecar.at(0.95)))
	ours, stock := r.schedule.sidecar, r.schedule.stage
	fmt.Fprintf(out, "created to all Running, s\t%.2f\t\t%.2f\t%.2f\t<= 1.05 of stock kwok\n",
		float64(b.scheduled)/ours.rate(b.scheduled), float64(b.scheduled)/stock.rate(b.scheduled), stock.ratio(ours))
	fmt.Fprintf(out, "CPU to start and prepare the fleet, s\t%.2f\t\t\t\t\n", prepare.cpu.Seconds())
	fmt.Fprintf(out, "resident memory with all prepared, MiB\t%d\t\t\t\t\n", prepare.memory/sidecar.MiB)
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
