package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/baseline"
)

// preparing has each way prepare a Pod on each node, bound and with its claim
// allocated by hand, so that no scheduler is the limit. KWOK has no Stages for
// Pods here.
type preparing struct {
	*world

	comparison comparison
	// startCPU is the CPU of a sidecar from its start on, and memory what it has when
	// all is prepared.
	startCPU time.Duration
	memory   int64
	// profiled counts the profiles that were taken.
	profiled int
}

func newPreparing(w *world) part {
	p := &preparing{world: w}
	byBaseline := func(work string) func(context.Context) (sample, error) {
		return func(ctx context.Context) (sample, error) { return w.runBaseline(ctx, p.awaitPrepared, work) }
	}
	watching := &way{name: "watching writer", run: p.withPods("watching", byBaseline(baseline.WatchingClaims))}
	raw := &way{name: "raw writer", run: p.withPods("raw", byBaseline(baseline.RawClaims))}
	p.comparison = comparison{
		unit: "Pod", count: w.nodes, limits: []*way{watching, raw},
		ways: []*way{{name: "kwok-dra", run: p.withPods("sidecar", p.bySidecar)}, watching, raw},
	}
	return part{
		title: fmt.Sprintf("Preparing %d Pods, %d rounds of kwok-dra, watching writer and raw writer", w.nodes, w.rounds),
		run:   p.run,
		print: p.print,
		takes: 30*time.Second + time.Duration(w.rounds)*w.perNode(75*time.Millisecond),
	}
}

// run begins with a warm-up.
func (p *preparing) run(ctx context.Context) error {
	if err := p.publishOnce(ctx); err != nil {
		return err
	}
	if _, err := p.withPods("warm-up", p.bySidecar)(ctx, 0); err != nil {
		return fmt.Errorf("prepare for the first time: %w", err)
	}
	return p.comparison.run(ctx, p.rounds)
}

// publishOnce publishes what Pods are to use. Nodes heartbeat from now on, or they
// would be taken for dead.
func (p *preparing) publishOnce(ctx context.Context) error {
	if err := p.playHeartbeats(ctx); err != nil {
		return err
	}
	process, err := p.publishedBy(ctx, plain)
	if err != nil {
		return err
	}
	return process.Stop()
}

// withPods makes Pods, has them prepared, and deletes them.
func (p *preparing) withPods(name string, prepare func(context.Context) (sample, error)) func(context.Context, int) (sample, error) {
	return func(ctx context.Context, round int) (s sample, err error) {
		namespace := fmt.Sprintf("%s-%d", name, round)
		if err := p.createNamespace(ctx, namespace); err != nil {
			return s, err
		}
		if err := fleet.InParallel(p.nodes, func(i int) error { return p.boundPod(ctx, namespace, i) }); err != nil {
			return s, err
		}
		if _, _, err := p.pods.Await(ctx, fleet.Bound, p.nodes); err != nil {
			return s, err
		}
		if s, err = prepare(ctx); err != nil {
			return s, err
		}
		return s, fleet.DeletePods(ctx, p.client, namespace)
	}
}

func (p *preparing) awaitPrepared(ctx context.Context) (time.Duration, error) {
	first, last, err := p.pods.Await(ctx, fleet.Prepared, p.nodes)
	return last.Sub(first), err
}

// bySidecar starts the sidecar where all is bound. Its workers begin when it is
// ready, and so does what is counted of its CPU.
func (p *preparing) bySidecar(ctx context.Context) (s sample, err error) {
	var arguments []string
	if p.profiles != "" {
		arguments = []string{"--profiling"}
	}
	process, err := p.startSidecar(ctx, plain, arguments...)
	if err != nil {
		return s, err
	}
	profiled := p.startProfile(ctx, process)
	s.cpu, err = cpuOf(process, func() (err error) {
		s.took, err = p.awaitPrepared(ctx)
		return err
	})
	if err != nil {
		return s, err
	}
	if p.startCPU, err = process.CPUTime(); err != nil {
		return s, err
	}
	if p.memory, err = process.ResidentMemory(); err != nil {
		return s, err
	}
	if err := <-profiled; err != nil {
		return s, err
	}
	return s, process.Stop()
}

// profileLength is about as long as it takes to prepare a fleet.
const profileLength = 5 * time.Second

// startProfile takes a CPU profile in the background, if profiles are wanted, and then a profile of all that was allocated.
func (p *preparing) startProfile(ctx context.Context, process *sidecar.Process) <-chan error {
	done := make(chan error, 1)
	if p.profiles == "" {
		close(done)
		return done
	}
	p.profiled++
	number := p.profiled
	go func() {
		for _, profile := range []struct{ file, path string }{
			{fmt.Sprintf("cpu-%d.pprof", number), fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", profileLength.Seconds())},
			{fmt.Sprintf("allocs-%d.pprof", number), "/debug/pprof/allocs"},
		} {
			taken, err := process.Get(ctx, profile.path)
			if err == nil {
				err = os.WriteFile(filepath.Join(p.profiles, profile.file), taken, 0o600)
			}
			if err != nil {
				done <- fmt.Errorf("take %s: %w", profile.file, err)
				return
			}
		}
		done <- nil
	}()
	return done
}

func (p *preparing) print(out io.Writer) {
	fmt.Fprintf(out, "\nPreparing %d bound Pods with a claim of one device each, one on each node, %d workers\n", p.nodes, fleet.Workers)
	p.comparison.print(out)
	fmt.Fprintln(out, "aim: kwok-dra >= 0.95 of the watching writer's rate and >= 0.9 of the raw writer's; its CPU does not rise")
	fmt.Fprintf(out, "CPU of kwok-dra to start and prepare: %.2f s; resident memory when all is prepared: %d MiB\n", p.startCPU.Seconds(), p.memory/sidecar.MiB)
}
