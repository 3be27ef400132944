package main

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// arriving measures from a node's turning Ready to its slice, both as a client
// sees them, one node at a time.
type arriving struct {
	*world

	sidecar, stage []time.Duration
}

func newArriving(w *world) part {
	a := &arriving{world: w}
	return part{
		title: fmt.Sprintf("Adding %d nodes one by one, with kwok-dra and with the Stage", w.newNodes),
		run:   a.run,
		print: a.print,
		takes: 15*time.Second + time.Duration(w.newNodes)*200*time.Millisecond,
	}
}

func (a *arriving) run(ctx context.Context) error {
	process, err := a.publishedBy(ctx, fleet.Template)
	if err != nil {
		return err
	}
	if a.sidecar, err = a.readLatencies(ctx, "sidecar"); err != nil {
		return err
	}
	if err := process.Stop(); err != nil {
		return err
	}
	if err := a.deleteSlices(ctx); err != nil {
		return err
	}
	if err := a.startStage(ctx, "latency"); err != nil {
		return err
	}
	if err := a.events.AwaitSlices(ctx, a.nodes); err != nil {
		return err
	}
	if a.stage, err = a.readLatencies(ctx, "stage"); err != nil {
		return err
	}
	return a.removeStage(ctx)
}

func (a *arriving) readLatencies(ctx context.Context, kind string) ([]time.Duration, error) {
	var all []time.Duration
	for i := range a.newNodes {
		name := fmt.Sprintf("%s-%d", kind, i)
		if _, err := a.client.CoreV1().Nodes().Create(ctx, fleet.NewNode(name), metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create node: %w", err)
		}
		latency, err := a.events.Latency(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, latency)
	}
	return all, fleet.InParallel(a.newNodes, func(i int) error {
		return a.client.CoreV1().Nodes().Delete(ctx, fmt.Sprintf("%s-%d", kind, i), metav1.DeleteOptions{})
	})
}

func (a *arriving) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d new nodes, one at a time\n\tkwok-dra\tkwok Stage\tratio\taim\n", a.newNodes)
	for _, row := range []struct {
		share float64
		aim   string
	}{{0.5, "<= 50 ms, <= Stage"}, {0.95, "<= Stage"}} {
		mine, theirs := pairs.Milliseconds(pairs.Quantile(a.sidecar, row.share)), pairs.Milliseconds(pairs.Quantile(a.stage, row.share))
		fmt.Fprintf(out, "Ready to slice, p%.0f, ms\t%.1f\t%.1f\t%.2f\t%s\n", row.share*100, mine, theirs, mine/theirs, row.aim)
	}
}
