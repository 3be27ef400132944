package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// options are the flags.
type options struct {
	only      string
	seeds     int
	buildOnly bool
}

func main() {
	o := options{}
	flag.StringVar(&o.only, "only", "", "put in the faults whose names match this regular expression")
	flag.IntVar(&o.seeds, "seeds", 100, "within how many stories each fault is to be found")
	flag.BoolVar(&o.buildOnly, "build-only", false, "build the programs, and play nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.proveAll(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// proveAll looks for one fault after the other.
func (o *options) proveAll(ctx context.Context) (err error) {
	matches, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	mutants, err := readMutants(filepath.Join(sidecar.Root(), patches), matches)
	if err != nil {
		return err
	}
	c := &checker{logs: filepath.Join(sidecar.Root(), "bin", "conformance-mutants")}
	if c.programs, err = os.MkdirTemp("", "kwok-dra-mutants-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.programs)) }()
	if !o.buildOnly {
		if err := c.buildPrograms(ctx); err != nil {
			return err
		}
	}
	var outcomes []outcome
	for i := range mutants {
		m := &mutants[i]
		program, err := trials[m.program].build(ctx, c, m.patch)
		found := outcome{mutant: m, err: err}
		if err == nil && !o.buildOnly {
			step := progress.Start(os.Stdout, fmt.Sprintf("[%d/%d] %s", i+1, len(mutants), m.name))
			found = c.findFault(ctx, m, program, o.seeds, step)
			step.Finish(found.err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		outcomes = append(outcomes, found)
	}
	return printTable(os.Stdout, outcomes)
}

// buildPrograms builds what all trials need.
func (c *checker) buildPrograms(ctx context.Context) error {
	programs, err := build.Ensure(ctx, build.Options{Versions: build.Versions{Kubernetes: kubernetes}, Output: os.Stdout})
	if err != nil {
		return err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", scheduler} {
		if err := os.Symlink(programs.Path(name), filepath.Join(c.programs, name)); err != nil {
			return fmt.Errorf("put together a control plane: %w", err)
		}
	}
	if err := os.MkdirAll(c.logs, 0o755); err != nil {
		return fmt.Errorf("create directory for logs: %w", err)
	}
	products, err := sidecar.Programs()
	c.dractl = filepath.Join(products, "kwok-dractl")
	return err
}
