// Command asking compares what questions to a large cluster take, in time, CPU and memory, with
// plain lists of the objects that the answers need, in protobuf.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// size is what the cluster has.
type size struct{ nodes, claims int }

// questions are the commands of kubectl dra that are measured.
var questions = []string{"overview", "why " + waitingPod}

func main() {
	var of size
	flag.IntVar(&of.nodes, "nodes", 5000, "nodes, with 8 devices each")
	flag.IntVar(&of.claims, "claims", 20000, "claims with a device, and a Pod each")
	rounds := flag.Int("rounds", 5, "rounds, of which the fastest counts")
	lists := flag.String("list", "", "only list these resources, by the kubeconfig of KUBECONFIG")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *lists != "" {
		err = listAll(ctx, os.Getenv("KUBECONFIG"), strings.Split(*lists, ","))
	} else {
		err = compare(ctx, of, *rounds)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "asking:", err)
		os.Exit(1)
	}
}

// compare asks each question in turn with the lists, on an API server on which nothing else acts.
func compare(ctx context.Context, of size, rounds int) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Disable: []string{cluster.Scheduler, cluster.ControllerManager, cluster.Kwok}, Audit: true, Output: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	client, err := admin.NewClient(c.Kubeconfig())
	if err != nil {
		return err
	}
	if err := fill(ctx, client, of); err != nil {
		return err
	}
	fmt.Printf("%s\n%d nodes, %d devices, %d claims, %d Pods; the fastest of %d rounds\n\n", fleet.Machine(c), of.nodes, of.nodes*devicesPerNode, of.claims, of.claims+1, rounds)
	fmt.Printf("| %-24s | time     | CPU      | memory   | time, ratio | CPU, ratio |\n|---|---|---|---|---|---|\n", "")
	program, err := buildPlugin()
	if err != nil {
		return err
	}
	for _, question := range questions {
		if err := measureQuestion(ctx, c, program, question, rounds); err != nil {
			return err
		}
	}
	return nil
}

// measureQuestion prints what a question takes, and what the lists take of the resources that the
// question reads.
func measureQuestion(ctx context.Context, c *cluster.Cluster, program, question string, rounds int) error {
	ask := newRunner(program, strings.Fields(question))
	asked := time.Now()
	if _, err := ask(ctx, c.Kubeconfig()); err != nil { // the API server answers faster later on
		return err
	}
	resources, err := listedBy(c, asked)
	if err != nil {
		return err
	}
	list, err := listerOf(resources)
	if err != nil {
		return err
	}
	var asking, listing usage
	for round := range rounds {
		both := []struct {
			run  runner
			best *usage
		}{{list, &listing}, {ask, &asking}}
		if round%2 == 1 { // what the first one leaves to the API server slows the second one down
			slices.Reverse(both)
		}
		for _, each := range both {
			used, err := each.run(ctx, c.Kubeconfig())
			if err != nil {
				return err
			}
			*each.best = each.best.orFaster(used)
		}
	}
	fmt.Printf("| %-24s | %s | %11.2f | %10.2f |\n", question, asking, asking.took.Seconds()/listing.took.Seconds(), asking.cpu.Seconds()/listing.cpu.Seconds())
	fmt.Printf("| %-24s | %s | | | %s\n", "lists", listing, strings.Join(resources, ", "))
	return nil
}
