package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/baseline"
)

// stageRounds are few: kwok takes thrice as long, and starts twice for it.
const stageRounds = 3

// publishing has each way publish the slices of the whole fleet.
type publishing struct {
	*world

	comparison comparison
	// list is what kwok-dra has published, for the writers to publish too, and file
	// where they find it.
	list resourcev1.ResourceSliceList
	file string
	// startCPU is the CPU of a sidecar from its start on.
	startCPU time.Duration
}

func newPublishing(w *world) part {
	p := &publishing{world: w}
	watching := &way{name: "watching writer", run: p.byBaseline(baseline.WatchingSlices)}
	raw := &way{name: "raw writer", run: p.byBaseline(baseline.RawSlices)}
	p.comparison = comparison{
		unit: "slice", count: w.nodes, limits: []*way{watching, raw},
		ways: []*way{{name: "kwok-dra", run: p.bySidecar}, watching, raw, {name: "kwok Stage", run: p.byStage, rounds: stageRounds}},
	}
	return part{
		title: fmt.Sprintf("Publishing the fleet, %d rounds of kwok-dra, watching writer and raw writer, with the Stage in %d", w.rounds, min(w.rounds, stageRounds)),
		run:   p.run,
		print: p.print,
		takes: time.Duration(w.rounds+1)*w.perNode(25*time.Millisecond) + stageRounds*w.perNode(20*time.Millisecond),
	}
}

// run begins with a warm-up, which also yields the slices for the writers.
func (p *publishing) run(ctx context.Context) error {
	if _, err := p.bySidecar(ctx, 0); err != nil {
		return fmt.Errorf("publish for the first time: %w", err)
	}
	return p.comparison.run(ctx, p.rounds)
}

func (w *world) awaitPublished(ctx context.Context) (time.Duration, error) {
	return w.events.Published(ctx, w.nodes)
}

// bySidecar has a template come while the sidecar runs.
func (p *publishing) bySidecar(ctx context.Context, _ int) (s sample, err error) {
	process, err := p.startSidecar(ctx, "")
	if err != nil {
		return s, err
	}
	if s, err = p.publishTemplate(ctx, process, fleet.Template); err != nil {
		return s, err
	}
	if p.startCPU, err = process.CPUTime(); err != nil {
		return s, err
	}
	if err := process.Stop(); err != nil {
		return s, err
	}
	if p.file == "" {
		if err := p.keepSlices(ctx); err != nil {
			return s, err
		}
	}
	return s, p.deleteSlices(ctx)
}

// publishTemplate gives a sidecar a template, and returns when all nodes have their slices.
func (w *world) publishTemplate(ctx context.Context, process *sidecar.Process, template string) (s sample, err error) {
	s.cpu, err = cpuOf(process, func() (err error) {
		if err := fleet.Configure(ctx, w.client, template); err != nil {
			return err
		}
		s.took, err = w.awaitPublished(ctx)
		return err
	})
	return s, err
}

// keepSlices writes the slices that there are to the file.
func (p *publishing) keepSlices(ctx context.Context) error {
	list, err := p.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list slices: %w", err)
	}
	for i := range list.Items {
		slice := &list.Items[i]
		slice.ObjectMeta = metav1.ObjectMeta{Name: slice.Name, Labels: slice.Labels, OwnerReferences: slice.OwnerReferences}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode slices: %w", err)
	}
	p.list, p.file = *list, filepath.Join(filepath.Dir(p.kubeconfig), "slices.json")
	if err := os.WriteFile(p.file, text, 0o600); err != nil {
		return fmt.Errorf("write slices: %w", err)
	}
	return nil
}

// byBaseline publishes the very slices that the sidecar published.
func (p *publishing) byBaseline(work string) func(context.Context, int) (sample, error) {
	return func(ctx context.Context, _ int) (sample, error) {
		s, err := p.runBaseline(ctx, p.awaitPublished, work, "--slices", p.file)
		if err != nil {
			return s, err
		}
		return s, p.deleteSlices(ctx)
	}
}

func (p *publishing) byStage(ctx context.Context, round int) (s sample, err error) {
	if err := p.startStage(ctx, strconv.Itoa(round)); err != nil {
		return s, err
	}
	if s.took, err = p.awaitPublished(ctx); err != nil {
		return s, err
	}
	return s, p.removeStage(ctx)
}

func (p *publishing) print(out io.Writer) {
	devices := p.list.Items[0].Spec.Devices
	fmt.Fprintf(out, "\nCold publish of %d nodes x %d devices x %d attributes, %d workers\n", p.nodes, len(devices), len(devices[0].Attributes), fleet.Workers)
	p.comparison.print(out)
	fmt.Fprintln(out, "aim: kwok-dra >= 0.95 of the watching writer's rate and >= 0.9 of the raw writer's, and faster than the Stage; its CPU does not rise")
	fmt.Fprintf(out, "CPU of kwok-dra to start and publish: %.2f s\n", p.startCPU.Seconds())
}
