// Command bench measures kwok-dra against its limit, a raw client that creates
// the same slices, and against what users can do without it, a kwok Stage. All
// is measured in one run on one real cluster, and told as ratios.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/fleet"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

//go:embed stage.yaml
var stage string

func main() {
	b := &bench{}
	flag.IntVar(&b.nodes, "nodes", 1000, "nodes of the fleet")
	flag.IntVar(&b.newNodes, "new-nodes", 200, "nodes that come one by one")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of publishing the whole fleet; the median counts")
	flag.IntVar(&b.scheduled, "scheduled", 500, "Pods that go through the scheduler")
	flag.StringVar(&b.only, "only", "", "measure just slices or claims; default: both")
	flag.DurationVar(&b.rest, "rest", time.Minute, "how long the fleet is watched while it only heartbeats")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	nodes, newNodes, rounds, scheduled int
	rest                               time.Duration
	only                               string

	cluster *cluster.Cluster
	client  kubernetes.Interface
	// kubeconfig is that of the sidecar's ServiceAccount, which the raw writer uses
	// as well: the API server does not treat all users alike.
	kubeconfig string
	rawWriter  kubernetes.Interface
	events     *fleet.Events
	pods       *fleet.PodEvents
	report     report
}

func (b *bench) run(ctx context.Context) (err error) {
	b.cluster, err = cluster.Start(ctx, cluster.Options{
		EnableCRDs: []string{"Stage"},
		// A kwok that starts again would wait for the leases of the old one to expire.
		ExtraArgs: map[string][]string{cluster.Kwok: {"node-lease-duration-seconds=0"}},
		Output:    os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := b.cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what watches the cluster ends before it
	for _, step := range b.steps() {
		fmt.Fprintf(os.Stderr, "%s ...\n", step.title)
		if err := step.run(ctx); err != nil {
			return err
		}
	}
	b.report.print(b)
	return nil
}

// step is a part of the benchmark that takes a while.
type step struct {
	title string
	run   func(context.Context) error
}

func (b *bench) steps() []step {
	steps := []step{
		{"Preparing the cluster", b.prepare},
		{fmt.Sprintf("Creating %d nodes", b.nodes), b.createFleet},
	}
	if b.only != "claims" {
		steps = append(steps,
			step{fmt.Sprintf("Publishing the fleet, %d rounds of kwok-dra, raw writer and Stage", b.rounds), b.publishFleet},
			step{fmt.Sprintf("Adding %d nodes one by one, with kwok-dra and with the Stage", b.newNodes), b.addNodes},
			step{fmt.Sprintf("Watching %d nodes heartbeat for %s", b.nodes, b.rest), b.watchHeartbeats})
	}
	if b.only != "slices" {
		steps = append(steps,
			step{"Publishing the fleet", b.publishOnce},
			step{fmt.Sprintf("Preparing %d Pods, %d rounds of kwok-dra and raw writer", b.nodes, b.rounds), b.prepareFleet},
			step{fmt.Sprintf("Binding %d Pods one by one", b.newNodes), b.bindPods},
			step{fmt.Sprintf("Scheduling %d Pods, %d rounds of kwok-dra and stock kwok", b.scheduled, b.rounds), b.schedulePods})
	}
	return steps
}

// publishOnce publishes what Pods are to use, and waits for it. Nodes heartbeat
// from now on, or they would be taken for dead.
func (b *bench) publishOnce(ctx context.Context) error {
	if err := fleet.ApplyKwokStage(ctx, b.cluster, "node/heartbeat/node-heartbeat.yaml"); err != nil {
		return err
	}
	if err := fleet.RestartKwok(ctx, b.cluster); err != nil {
		return err
	}
	process, err := b.startSidecar(ctx, plain)
	if err != nil {
		return err
	}
	if err := b.events.AwaitSlices(ctx, b.nodes); err != nil {
		return err
	}
	return process.Stop()
}

func (b *bench) prepare(ctx context.Context) error {
	var err error
	if b.client, err = fleet.NewClient(b.cluster.Kubeconfig()); err != nil {
		return err
	}
	if b.kubeconfig, err = sidecar.ServiceAccount(ctx, b.cluster); err != nil {
		return err
	}
	if b.rawWriter, err = fleet.NewClient(b.kubeconfig); err != nil {
		return err
	}
	if err := fleet.ApplyKwokStage(ctx, b.cluster, "node/fast/node-initialize.yaml"); err != nil {
		return err
	}
	if b.pods, err = fleet.WatchPods(ctx, b.client); err != nil {
		return err
	}
	b.events, err = fleet.WatchEvents(ctx, b.client)
	return err
}

// publishFleet has each way publish the slices of the whole fleet, in turn. The
// first round is a warm-up, which also yields the slices for the raw writer.
func (b *bench) publishFleet(ctx context.Context) error {
	for round := range b.rounds + 1 {
		took, err := b.publishBySidecar(ctx)
		if err != nil {
			return fmt.Errorf("publish by kwok-dra: %w", err)
		}
		if round == 0 {
			continue
		}
		b.report.sidecar.rates = append(b.report.sidecar.rates, took)
		if took, err = b.publishByRawWriter(ctx); err != nil {
			return fmt.Errorf("publish by the raw writer: %w", err)
		}
		b.report.raw.rates = append(b.report.raw.rates, took)
		if took, err = b.publishByStage(ctx, strconv.Itoa(round)); err != nil {
			return fmt.Errorf("publish by the Stage: %w", err)
		}
		b.report.stage.rates = append(b.report.stage.rates, took)
		fmt.Fprintf(os.Stderr, "  round %d: slices/s: %s\n", round, b.report.lastRates())
	}
	return nil
}

// addNodes measures from a node's turning Ready to its slice, both as a client
// sees them.
func (b *bench) addNodes(ctx context.Context) error {
	process, err := b.startSidecar(ctx, fleet.Template)
	if err != nil {
		return err
	}
	if err := b.events.AwaitSlices(ctx, b.nodes); err != nil {
		return err
	}
	if b.report.sidecar.latencies, err = b.latencies(ctx, "sidecar"); err != nil {
		return err
	}
	if err := process.Stop(); err != nil {
		return err
	}
	if err := b.clear(ctx); err != nil {
		return err
	}
	if err := b.applyStage(ctx, "latency"); err != nil {
		return err
	}
	if err := fleet.RestartKwok(ctx, b.cluster); err != nil {
		return err
	}
	if err := b.events.AwaitSlices(ctx, b.nodes); err != nil {
		return err
	}
	if b.report.stage.latencies, err = b.latencies(ctx, "stage"); err != nil {
		return err
	}
	return b.removeStage(ctx)
}

func (b *bench) applyStage(ctx context.Context, round string) error {
	_, err := b.cluster.KubectlInput(ctx, strings.NewReader(strings.ReplaceAll(stage, "ROUND", round)), "apply", "-f", "-")
	return err
}

func (b *bench) latencies(ctx context.Context, kind string) ([]time.Duration, error) {
	var all []time.Duration
	for i := range b.newNodes {
		name := fmt.Sprintf("%s-%d", kind, i)
		if _, err := b.client.CoreV1().Nodes().Create(ctx, fleet.NewNode(name), metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create node: %w", err)
		}
		latency, err := b.events.Latency(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, latency)
	}
	return all, b.deleteNodes(ctx, kind)
}

// watchHeartbeats measures what the sidecar does while nothing happens but
// kwok's heartbeats, each node's every 20 to 25 s.
func (b *bench) watchHeartbeats(ctx context.Context) error {
	if err := fleet.ApplyKwokStage(ctx, b.cluster, "node/heartbeat/node-heartbeat.yaml"); err != nil {
		return err
	}
	if err := fleet.RestartKwok(ctx, b.cluster); err != nil {
		return err
	}
	process, err := b.startSidecar(ctx, fleet.Template)
	if err != nil {
		return err
	}
	if err := b.events.AwaitSlices(ctx, b.nodes); err != nil {
		return err
	}
	if err := fleet.Pause(ctx, 5*time.Second); err != nil {
		return err
	}
	before, err := b.observe(ctx, process)
	if err != nil {
		return err
	}
	if err := fleet.Pause(ctx, b.rest); err != nil {
		return err
	}
	after, err := b.observe(ctx, process)
	if err != nil {
		return err
	}
	b.report.resting(before, after)
	return process.Stop()
}
