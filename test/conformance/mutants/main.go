package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

const (
	// kubernetes is the version that the patches are for.
	kubernetes = "v1.36.3"
	scheduler  = "kube-scheduler"
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
	flag.BoolVar(&o.buildOnly, "build-only", false, "build the schedulers, and play nothing")
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
	root, err := gomod.Root("github.com/kwok-dra/kwok-dra")
	if err != nil {
		return err
	}
	mutants, err := readMutants(filepath.Join(root, patches), matches)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "kwok-dra-mutants-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	c := &checker{folder: folder, logs: filepath.Join(root, "bin", "scheduler-mutants")}
	if !o.buildOnly {
		if err := c.buildPrograms(ctx, root); err != nil {
			return err
		}
	}
	var outcomes []outcome
	for i := range mutants {
		m := &mutants[i]
		program, err := build.EnsurePatched(ctx, build.Patched{Kubernetes: kubernetes, Program: scheduler, Patch: m.patch}, os.Stdout)
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
func (c *checker) buildPrograms(ctx context.Context, root string) error {
	programs, err := build.Ensure(ctx, build.Options{Versions: build.Versions{Kubernetes: kubernetes}, Output: os.Stdout})
	if err != nil {
		return err
	}
	c.programs = filepath.Join(c.folder, "control-plane")
	if err := errors.Join(os.MkdirAll(c.programs, 0o755), os.MkdirAll(c.logs, 0o755)); err != nil {
		return fmt.Errorf("make folders: %w", err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", scheduler} {
		if err := os.Symlink(programs.Path(name), filepath.Join(c.programs, name)); err != nil {
			return fmt.Errorf("put together a control plane: %w", err)
		}
	}
	c.dractl = filepath.Join(c.folder, "kwok-dractl")
	compile := exec.CommandContext(ctx, "go", "build", "-o", c.dractl, "./cmd/kwok-dractl")
	compile.Dir = root
	compile.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("build kwok-dractl: %w\n%s", err, out)
	}
	return nil
}
