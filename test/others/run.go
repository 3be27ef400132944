package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/module"

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
	// record is the file that keeps what came of each suite. Optional.
	record string
}

type printer func(io.Writer, []*report.Suite) error

// run runs a suite. What keeps it from running is in the result.
func (r *runner) run(ctx context.Context, s suite) *report.Suite {
	result := &report.Suite{Name: s.name, Version: s.tests.Module.Version}
	if s.origin != nil {
		result.Version = s.checkout.Module.Version
		if s.checkout.Dir == "" {
			result.Skipped = s.origin.advice(s.name)
			return result
		}
	}
	started := time.Now()
	err := r.play(ctx, s, result)
	s.explain(result.Specs)
	if err == nil && ctx.Err() == nil && r.record != "" {
		record := report.NewRecord(result, time.Since(started))
		record.Title = s.title
		err = report.Keep(r.record, record)
	}
	if err != nil {
		result.Problem = err.Error()
	}
	return result
}

func (r *runner) play(ctx context.Context, s suite, result *report.Suite) error {
	run, err := r.player(ctx, s)
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
	result.Kubernetes, result.Kwok = strings.TrimPrefix(w.Versions().Kubernetes, "v"), strings.TrimPrefix(w.Versions().Kwok, "v")
	result.Log = filepath.Join(r.logs, s.name+".log")
	step := progress.Start(os.Stderr, fmt.Sprintf("Running %s %s, log %s", s.name, result.Version, result.Log))
	err = run(w, result)
	step.Finish(err)
	return errors.Join(err, w.keepLogs(r.logs, s.name), w.stop())
}

// A player runs the specs of a suite, and writes into the result what came of them.
type player func(w *world, result *report.Suite) error

// player builds what has the specs of a suite, and returns what runs them.
func (r *runner) player(ctx context.Context, s suite) (player, error) {
	if s.load != nil {
		return s.load(ctx, r, s)
	}
	if s.stories != nil {
		return func(w *world, result *report.Suite) (err error) {
			result.Specs, err = r.tell(ctx, w, s.stories, result.Log)
			return err
		}, nil
	}
	program, dir, err := s.buildTests(ctx)
	if err != nil {
		return nil, err
	}
	start := []string{program}
	if s.parallel > 1 {
		if start, err = s.inParallel(ctx, program); err != nil {
			return nil, err
		}
	}
	return func(w *world, result *report.Suite) (err error) {
		kubeconfig := cmp.Or(w.installed.kubeconfig, w.Kubeconfig())
		result.Specs, err = r.test(ctx, s, start, dir, kubeconfig, result.Log)
		return err
	}, nil
}

// buildTests builds the tests of a suite, and returns the program and the folder of its package.
func (s *suite) buildTests(ctx context.Context) (program, dir string, err error) {
	if s.origin != nil {
		program, err = s.checkout.EnsureTests(ctx, s.tests.Package, os.Stderr)
		return program, filepath.Join(s.checkout.Dir, strings.TrimPrefix(s.tests.Package, s.checkout.Module.Path)), err
	}
	if program, err = build.EnsureTests(ctx, s.tests, os.Stderr); err != nil {
		return "", "", err
	}
	source, err := gomod.Download(ctx, sidecar.Root(), s.tests.Module.String())
	return program, filepath.Join(source.Dir, strings.TrimPrefix(s.tests.Package, s.tests.Module.Path)), err
}

// buildCommands builds the commands of a suite, and returns their paths.
func (s *suite) buildCommands(ctx context.Context) (map[command]string, error) {
	programs := map[command]string{}
	if s.build != nil {
		if _, err := s.build(); err != nil {
			return nil, err
		}
	}
	for _, c := range s.commands {
		var err error
		if c.module == (module.Version{}) {
			programs[c], err = s.checkout.EnsureCommand(ctx, s.checkout.Module.Path+c.path, os.Stderr)
		} else {
			programs[c], err = build.EnsureCommand(ctx, c.module, c.module.Path+c.path, os.Stderr)
		}
		if err != nil {
			return nil, err
		}
	}
	return programs, nil
}

// test runs the tests as "go test" would, in the folder of their package. start is the program, or
// Ginkgo's with its first arguments.
func (r *runner) test(ctx context.Context, s suite, start []string, dir, kubeconfig, logFile string) ([]report.Spec, error) {
	reported := filepath.Join(r.logs, s.name+".json")
	if err := os.Remove(reported); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove report of an earlier run: %w", err)
	}
	artifacts := filepath.Join(r.logs, s.name)
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return nil, fmt.Errorf("create directory for reports: %w", err)
	}
	cmd := exec.CommandContext(ctx, start[0], s.arguments(start, r.focus, reported)...)
	cmd.Dir = dir
	before, err := filesIn(dir)
	if err != nil {
		return nil, err
	}
	// By the convention of Kubernetes' projects this is where reports go, and not into the
	// folder of the package, which is in Go's module cache.
	if err := runAlone(cmd, logFile, "KUBECONFIG="+kubeconfig, "ARTIFACTS="+artifacts); err != nil {
		return nil, err
	}
	if err := checkUnchanged(dir, before); err != nil {
		return nil, err
	}
	specs, err := report.Read(reported, s.label)
	return slices.DeleteFunc(specs, s.foreign), err
}

// arguments are those of a program with tests, or of Ginkgo's, whose flags have no prefix and which takes the
// program last.
func (s *suite) arguments(start []string, focus, reported string) []string {
	flags := append(s.choice(focus), "-ginkgo.v", "-ginkgo.no-color")
	if len(start) == 1 {
		return append(flags, "-ginkgo.json-report="+reported)
	}
	for i := range flags {
		flags[i] = "-" + strings.TrimPrefix(flags[i], "-ginkgo.")
	}
	flags = append(flags, "-output-dir="+filepath.Dir(reported), "-json-report="+filepath.Base(reported))
	return append(flags, start[1:]...)
}

// filesIn are the files in a folder and below it, with when they were last written.
func filesIn(dir string) (map[string]time.Time, error) {
	files := map[string]time.Time{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			files[path] = info.ModTime()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the files of the suite: %w", err)
	}
	return files, nil
}

// checkUnchanged is an error if a suite has written into its folder: that is in the module
// cache, or in somebody's checkout.
func checkUnchanged(dir string, before map[string]time.Time) error {
	after, err := filesIn(dir)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if written, known := before[path]; !known || !written.Equal(after[path]) {
			return fmt.Errorf("the suite has written %s into its source: remove it, and have the suite write elsewhere", path)
		}
	}
	return nil
}

// choice are the arguments that choose specs: those of the suite, or what the user asks for.
// Ginkgo takes an empty expression for one that all names match.
func (s *suite) choice(focus string) []string {
	if focus == "" && s.specs != nil {
		focus = s.specs.String()
	}
	var arguments []string
	for name, value := range map[string]string{"focus": focus, "skip": s.without(), "label-filter": s.label} {
		if value != "" {
			arguments = append(arguments, "-ginkgo."+name+"="+value)
		}
	}
	return arguments
}

// runAlone runs a program that has tests, with more variables and a home of its own. That
// tests failed is for the report to say.
func runAlone(cmd *exec.Cmd, logFile string, variables ...string) error {
	log, err := os.Create(logFile)
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	home, err := os.MkdirTemp("", "kwok-dra-others-")
	if err != nil {
		return fmt.Errorf("create home directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	// What Helm and kubectl keep does not go into the user's home.
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=")
	cmd.Env = append(cmd.Env, variables...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: what the tests have started ends with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return fmt.Errorf("run tests: %w", err)
	}
	return nil
}
