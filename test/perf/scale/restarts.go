package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/baseline"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// restarts is how often kwok-dra and plain informers start in turn.
const restarts = 5

// starter starts a process, which is ready when it returns, and notes how long that
// took.
type starter struct {
	start   func(context.Context) (*sidecar.Process, error)
	seconds *[]float64
}

// measureRestarts has kwok-dra, and plain informers on the same objects, start in
// turn where all is done.
func (w *world) measureRestarts(ctx context.Context, r *restart) error {
	fmt.Fprintf(os.Stderr, "  Starting kwok-dra, and plain informers, %d times each ...\n", restarts)
	ours := starter{func(ctx context.Context) (*sidecar.Process, error) { return w.startSidecar(ctx) }, &r.Ready}
	plain := starter{func(ctx context.Context) (*sidecar.Process, error) {
		return baseline.Start(ctx, w.cluster, w.kubeconfig, baseline.Lists)
	}, &r.Plain}
	for round := range restarts {
		for _, s := range pairs.Order(round, []starter{ours, plain}) {
			if err := s.restartOnce(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s starter) restartOnce(ctx context.Context) error {
	start := time.Now()
	process, err := s.start(ctx)
	if err != nil {
		return err
	}
	*s.seconds = append(*s.seconds, time.Since(start).Seconds())
	return process.Stop()
}
