// Command soak has nodes, Pods with claims, templates and taints come and go at a
// steady pace on a real cluster, and tells every minute how much memory, how many
// goroutines and how much time kwok-dra takes. At the end it says whether all of
// that has stayed flat.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	s := &soak{}
	flag.DurationVar(&s.length, "for", time.Hour, "how long")
	flag.DurationVar(&s.every, "every", time.Minute, "how often it tells")
	flag.IntVar(&s.nodes, "nodes", 200, "nodes, about")
	flag.IntVar(&s.pods, "pods", 300, "Pods, about")
	flag.Float64Var(&s.rate, "rate", 6, "changes per second")
	flag.Uint64Var(&s.seed, "seed", 1, "of the random changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.runSoak(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type soak struct {
	length, every time.Duration
	nodes, pods   int
	rate          float64
	seed          uint64
}

var errTooFew = errors.New("want at least 8 times as long as -every, to compare quarters")

func (s *soak) runSoak(ctx context.Context) (err error) {
	if s.length < 8*s.every {
		return fmt.Errorf("run for %s: %w", s.length, errTooFew)
	}
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stopCluster()) }()
	c := newChurn(w, s)
	fmt.Fprintf(os.Stderr, "Creating %d nodes and %d Pods ...\n", s.nodes, s.pods)
	if err := c.fillFleet(ctx); err != nil {
		return fmt.Errorf("fill the cluster: %w", err)
	}
	samples, err := s.churnAndSample(ctx, w, c)
	if err != nil {
		return err
	}
	return printVerdicts(os.Stdout, samples)
}

// churnAndSample makes changes for as long as asked, and takes samples.
func (s *soak) churnAndSample(ctx context.Context, w *world, c *churn) ([]sample, error) {
	start := time.Now()
	change := time.NewTicker(time.Duration(float64(time.Second) / s.rate))
	defer change.Stop()
	tell := time.NewTicker(s.every)
	defer tell.Stop()
	var samples []sample
	fmt.Println(header)
	for time.Since(start) < s.length || len(samples) < int(s.length/s.every) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-change.C:
			if err := c.makeChange(ctx); err != nil {
				return nil, fmt.Errorf("after %s: %w", time.Since(start).Round(time.Second), err)
			}
		case <-tell.C:
			taken, err := w.takeSample(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("after %s: %w", time.Since(start).Round(time.Second), err)
			}
			fmt.Println(taken.formatLine(time.Since(start)))
			samples = append(samples, taken)
		}
	}
	return samples, nil
}
