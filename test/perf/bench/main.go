// Command bench measures kwok-dra against its limits, a raw client that does the
// same writes and one that also watches as it must, and against what users can do
// without it, a kwok Stage. All is measured in one run on one real cluster, and
// told as ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// options say what is measured, and how long.
type options struct {
	nodes, newNodes, rounds, scheduled int
	rest                               time.Duration
	only, profiles                     string
}

func main() {
	o := options{}
	flag.IntVar(&o.nodes, "nodes", 1000, "nodes of the fleet")
	flag.IntVar(&o.newNodes, "new-nodes", 200, "nodes that come, and Pods that are bound, one by one")
	flag.IntVar(&o.rounds, "rounds", 11, "rounds of publishing and of preparing the whole fleet, in each of which all ways take turns")
	flag.IntVar(&o.scheduled, "scheduled", 500, "Pods that go through the scheduler")
	flag.StringVar(&o.only, "only", "", "measure just slices, charts (slices for driver Pods) or claims; default: all")
	flag.StringVar(&o.profiles, "profiles", "", "a directory for CPU profiles of kwok-dra while it prepares; its figures then include the cost of profiling")
	flag.DurationVar(&o.rest, "rest", time.Minute, "how long the fleet is watched while it only heartbeats")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runParts(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runParts(ctx context.Context, o options) (err error) {
	if o.rounds < 1 {
		return fmt.Errorf("%d rounds: want at least 1", o.rounds)
	}
	w := &world{options: o}
	parts := w.partsInOrder()
	if len(parts) == 1 {
		return fmt.Errorf("-only %s: want slices, charts or claims", o.only)
	}
	start := time.Now()
	fmt.Fprintf(os.Stderr, "%d rounds with %d nodes take about %s on two cores.\n", o.rounds, o.nodes, estimateLength(parts))
	if err := w.startCluster(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.cluster.Stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what watches the cluster ends before it
	if err := w.createNodes(ctx); err != nil {
		return err
	}
	for _, p := range parts {
		fmt.Fprintf(os.Stderr, "%s ...\n", p.title)
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "That took %s.\n", formatMinutes(time.Since(start)))
	return printReport(parts, fleet.Machine(w.cluster))
}

// part is something that is measured, or done for what is measured next.
type part struct {
	title string
	run   func(context.Context) error
	// print tells what was measured.
	print func(out io.Writer)
	takes time.Duration
}

// partsInOrder are what is done, in this order.
func (w *world) partsInOrder() []part {
	all := []part{{fmt.Sprintf("Creating %d nodes", w.nodes), w.createFleet, printNothing, w.perNode(5 * time.Millisecond)}}
	for _, subject := range []struct {
		name  string
		parts []func(*world) part
	}{
		{"slices", []func(*world) part{newPublishing, newArriving, newResting}},
		{"charts", []func(*world) part{newCharted}},
		{"claims", []func(*world) part{newPreparing, newBinding, newScheduling}},
	} {
		for _, newPart := range subject.parts {
			if w.only == "" || w.only == subject.name {
				all = append(all, newPart(w))
			}
		}
	}
	return all
}

func printNothing(io.Writer) {}

// perNode is how long all nodes take.
func (o *options) perNode(one time.Duration) time.Duration {
	return time.Duration(o.nodes) * one
}

// estimateLength is about how long all parts take, in minutes.
func estimateLength(parts []part) string {
	var sum time.Duration
	for _, p := range parts {
		sum += p.takes
	}
	return formatMinutes(sum)
}

func formatMinutes(length time.Duration) string {
	return fmt.Sprintf("%.0f min", max(1, length.Minutes()))
}

func printReport(parts []part, machine string) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, p := range parts {
		p.print(out)
	}
	fmt.Fprintf(out, "\nOf each figure the median. A ratio is the median of the ratios within the rounds, with the least and the most.\n%s\n", machine)
	return out.Flush()
}
