package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/others/report"
)

// endLimit bounds the wait for a suite that was told to end.
const endLimit = 20 * time.Second

// runner says how to run suites.
type runner struct {
	// focus chooses specs, and logs is where to keep what they say.
	focus, logs string
	// without is what kwok-dra does not do, for specs to fail. Optional.
	without string
}

type printer func(io.Writer, []*report.Suite) error

// run runs a suite. What keeps it from running is in the result.
func (r *runner) run(ctx context.Context, s suite) *report.Suite {
	result := &report.Suite{Name: s.name, Version: s.tests.Module.Version}
	err := r.play(ctx, s, result)
	if err != nil {
		result.Problem = err.Error()
	}
	s.explain(result.Specs)
	return result
}

func (r *runner) play(ctx context.Context, s suite, result *report.Suite) error {
	specs, err := r.specs(ctx, s)
	if err != nil {
		return err
	}
	if _, err := sidecar.Programs(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.logs, 0o755); err != nil {
		return fmt.Errorf("create directory for logs: %w", err)
	}
	w, err := startWorld(ctx, s)
	if err != nil {
		return err
	}
	result.Kubernetes = strings.TrimPrefix(w.Versions().Kubernetes, "v")
	result.Log = filepath.Join(r.logs, s.name+".log")
	step := progress.Start(os.Stderr, fmt.Sprintf("Running %s %s, log %s", s.name, result.Version, result.Log))
	result.Specs, err = specs(w, result.Log)
	step.Finish(err)
	return errors.Join(err, w.keepLogs(r.logs, s.name), w.stop())
}

// specs builds what has the specs of a suite, and returns what runs them.
func (r *runner) specs(ctx context.Context, s suite) (func(w *world, log string) ([]report.Spec, error), error) {
	if s.stories != nil {
		return func(w *world, log string) ([]report.Spec, error) { return r.tell(ctx, w, s.stories, log) }, nil
	}
	program, err := build.EnsureTests(ctx, s.tests, os.Stderr)
	return func(w *world, log string) ([]report.Spec, error) { return r.test(ctx, s, program, w.Kubeconfig(), log) }, err
}

// test runs the program as "go test" would, in the folder of its package.
func (r *runner) test(ctx context.Context, s suite, program, kubeconfig, logFile string) ([]report.Spec, error) {
	source, err := gomod.Download(ctx, sidecar.Root(), s.tests.Module.String())
	if err != nil {
		return nil, err
	}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	reported := filepath.Join(r.logs, s.name+".json")
	if err := os.Remove(reported); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove report of an earlier run: %w", err)
	}
	home, err := os.MkdirTemp("", "kwok-dra-others-")
	if err != nil {
		return nil, fmt.Errorf("create home directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	cmd := exec.CommandContext(ctx, program, "-ginkgo.v", "-ginkgo.no-color", "-ginkgo.json-report="+reported,
		"-ginkgo.skip="+s.without(), "-ginkgo.focus="+r.focus, "-ginkgo.label-filter="+s.label)
	cmd.Dir = filepath.Join(source.Dir, strings.TrimPrefix(s.tests.Package, s.tests.Module.Path))
	// What Helm and kubectl keep does not go into the user's home.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home, "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=")
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: what the tests have started ends with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	// That specs failed is in the report.
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return nil, fmt.Errorf("run tests: %w", err)
	}
	return report.Read(reported, s.label)
}
