// Command nodeload measures the load that --node-load makes against that of real drivers. In rounds that take turns, fake
// nodes come up, Pods with a claim each run on them and are deleted, on a cluster of its own each time: once each node has a
// process of dra-example-driver, and once kwok-dra publishes, prepares and sends the drivers' requests itself. The requests of
// kubelets are kwok-dra's both times.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// options say what is measured.
type options struct {
	nodes, pods, rounds, fleet int
	rest                       time.Duration
}

func main() {
	o := options{}
	flag.IntVar(&o.nodes, "nodes", 50, "fake nodes, each with a driver")
	flag.IntVar(&o.pods, "pods", 200, "Pods, each with a claim of one device")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, in each of which both ways take a turn")
	flag.IntVar(&o.fleet, "fleet", 1000, "nodes of a fleet that has --node-load at the end, without Pods; 0: none")
	flag.DurationVar(&o.rest, "rest", 45*time.Second, "how long the nodes rest in each turn before Pods come")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodeload:", err)
		os.Exit(1)
	}
}

// way is one way to have drivers on the nodes.
type way struct {
	name    string
	hasReal bool
	turns   []*figures
}

func (o options) run(ctx context.Context) error {
	actual, played := &way{name: "real drivers", hasReal: true}, &way{name: "--node-load"}
	machine := ""
	for round := range o.rounds {
		for _, w := range pairs.Order(round, []*way{actual, played}) {
			fmt.Fprintf(os.Stderr, "round %d of %d: %d nodes and %d Pods with %s ...\n", round+1, o.rounds, o.nodes, o.pods, w.name)
			taken, err := takeTurn(ctx, turn{hasReal: w.hasReal, nodes: o.nodes, pods: o.pods, rest: o.rest})
			if err != nil {
				return fmt.Errorf("round %d with %s: %w", round+1, w.name, err)
			}
			machine = taken.machine
			w.turns = append(w.turns, taken)
		}
	}
	if o.rounds > 0 {
		fmt.Printf("%d fake nodes, %d Pods with a claim each: a process of dra-example-driver on each node, against --node-load (%s)\n", o.nodes, o.pods, machine)
		if err := printComparison(os.Stdout, actual, played); err != nil {
			return err
		}
	}
	if o.fleet == 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%d nodes with --node-load ...\n", o.fleet)
	taken, err := takeTurn(ctx, turn{nodes: o.fleet, rest: o.rest})
	if err != nil {
		return fmt.Errorf("%d nodes: %w", o.fleet, err)
	}
	fmt.Printf("\n%d fake nodes with --node-load (%s)\n", o.fleet, taken.machine)
	return printFleet(os.Stdout, taken)
}
