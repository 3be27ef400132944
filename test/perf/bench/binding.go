package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// binding measures from a Pod's binding to its being prepared, both as a client
// sees them, one Pod at a time.
type binding struct {
	*world

	latencies []time.Duration
}

func newBinding(w *world) part {
	b := &binding{world: w}
	return part{
		title: fmt.Sprintf("Binding %d Pods one by one", w.newNodes),
		run:   b.run,
		print: b.print,
		takes: 10*time.Second + time.Duration(w.newNodes)*100*time.Millisecond,
	}
}

func (b *binding) run(ctx context.Context) error {
	const namespace = "idle"
	if err := b.createNamespace(ctx, namespace); err != nil {
		return err
	}
	process, err := b.startSidecar(ctx, plain)
	if err != nil {
		return err
	}
	for i := range b.newNodes {
		if err := b.boundPod(ctx, namespace, i); err != nil {
			return err
		}
		_, prepared, err := b.pods.Await(ctx, fleet.Prepared, i+1)
		if err != nil {
			return err
		}
		_, bound, err := b.pods.Await(ctx, fleet.Bound, i+1)
		if err != nil {
			return err
		}
		b.latencies = append(b.latencies, prepared.Sub(bound))
	}
	if err := process.Stop(); err != nil {
		return err
	}
	return fleet.DeletePods(ctx, b.client, namespace)
}

func (b *binding) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d Pods bound one at a time\n\tkwok-dra\taim\n", b.newNodes)
	fmt.Fprintf(out, "bound to PodReadyToStartContainers, p50, ms\t%.1f\t<= 50 ms\n", pairs.Milliseconds(pairs.Quantile(b.latencies, 0.5)))
	fmt.Fprintf(out, "bound to PodReadyToStartContainers, p95, ms\t%.1f\t\n", pairs.Milliseconds(pairs.Quantile(b.latencies, 0.95)))
}
