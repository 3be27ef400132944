package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

const repository = "github.com/kwok-dra/kwok-dra"

// modules are the modules of the repository that have tests, as directories.
var modules = []string{".", "test/cluster", "test", "test/e2e/dashboards", "test/e2e/helm", "test/karpenter", "test/others"}

// clusterPrograms is a dependency of each test that needs a cluster.
const clusterPrograms = repository + "/test/cluster/build"

// slow are the packages that take longest, quickest first. They run after all
// others. What is below such a directory belongs to it.
var slow = []string{"test/karpenter", "test/e2e/install", "test/e2e/docs", "test/e2e", "test/faults"}

// A part is what the suite runs, times and reports as one.
type part struct {
	name string
	// needsCluster reports whether the part is of no use without the programs of a cluster.
	needsCluster bool
	// run writes what a reader needs to understand a failure to out.
	run func(ctx context.Context, out io.Writer) error
	// reports says that run shows its own progress.
	reports bool
}

// parts returns all parts in the order in which they run: the tests that need no
// cluster, module by module, the programs of a cluster, and the packages that
// start clusters, one by one.
func parts(ctx context.Context) ([]part, error) {
	root, err := gomod.Root(repository)
	if err != nil {
		return nil, err
	}
	var quick []part
	var onClusters []string
	for _, module := range modules {
		found, err := list(ctx, filepath.Join(root, module))
		if err != nil {
			return nil, err
		}
		if len(found.quick) > 0 {
			quick = append(quick, part{name: quickName(module), run: goTest(filepath.Join(root, module), found.quick...)})
		}
		onClusters = append(onClusters, found.onClusters...)
	}
	all := slices.Concat(quick, []part{{name: "programs of a cluster", run: ensurePrograms, reports: true}})
	sortSlowLast(onClusters)
	for _, pkg := range onClusters {
		name := strings.TrimPrefix(pkg, repository+"/")
		all = append(all, part{name: name, needsCluster: true, run: goTest(moduleOf(root, name), pkg)})
	}
	return all, nil
}

func quickName(module string) string {
	if module == "." {
		return "unit tests"
	}
	return "unit tests of " + module
}

// moduleOf returns the directory of the module that a package belongs to, which
// is the one with the longest path.
func moduleOf(root, name string) string {
	owner := "."
	for _, module := range modules {
		if (name == module || strings.HasPrefix(name, module+"/")) && len(module) > len(owner) {
			owner = module
		}
	}
	return filepath.Join(root, owner)
}

// packages are import paths of packages with tests.
type packages struct{ quick, onClusters []string }

// list finds the packages of a module that have tests.
func list(ctx context.Context, dir string) (packages, error) {
	// The tests of package x are the program x.test.
	const format = `{{if eq .Name "main"}}{{.ImportPath}}{{range .Deps}} {{.}}{{end}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-test", "-f", format, "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return packages{}, fmt.Errorf("list the tests of %s: %w", dir, err)
	}
	return classify(string(out)), nil
}

func classify(lines string) packages {
	var p packages
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasSuffix(fields[0], ".test") {
			continue
		}
		pkg := strings.TrimSuffix(fields[0], ".test")
		if slices.Contains(fields, clusterPrograms) {
			p.onClusters = append(p.onClusters, pkg)
		} else {
			p.quick = append(p.quick, pkg)
		}
	}
	return p
}

func sortSlowLast(pkgs []string) {
	rank := func(pkg string) int {
		name := strings.TrimPrefix(pkg, repository+"/")
		return 1 + slices.IndexFunc(slow, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
	}
	slices.SortStableFunc(pkgs, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}

func matching(all []part, wanted *regexp.Regexp) []part {
	return slices.DeleteFunc(all, func(p part) bool { return !wanted.MatchString(p.name) })
}

// goTest runs the tests of packages of the module in dir. The time limit is for
// tests that hang.
func goTest(dir string, pkgs ...string) func(context.Context, io.Writer) error {
	return func(ctx context.Context, out io.Writer) error {
		cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-timeout", "30m"}, pkgs...)...)
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = out, out
		cmd.Cancel = func() error { return interrupt(cmd.Process) }
		cmd.WaitDelay = time.Minute
		return cmd.Run()
	}
}

func ensurePrograms(ctx context.Context, out io.Writer) error {
	_, err := build.Ensure(ctx, build.Options{Output: out})
	return err
}
