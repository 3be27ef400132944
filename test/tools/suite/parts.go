package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

const repository = "github.com/kwok-dra/kwok-dra"

// modules are the modules of the repository that have tests, as directories.
var modules = []string{".", "test/cluster", "test", "test/e2e/dashboards", "test/e2e/helm", "test/karpenter", "test/others"}

// clusterPrograms is a dependency of each test that needs a cluster.
const clusterPrograms = repository + "/test/cluster/build"

// programsPart makes what tests on clusters start: the programs of a cluster, and
// kwok-dra's own, which are linked once for all parts.
const programsPart = "programs of a cluster"

// A part is what the suite runs, times and reports as one.
type part struct {
	name string
	// needsCluster reports whether the part is of no use without the programs of a cluster.
	needsCluster bool
	// waits reports whether the part waits for clocks more than it computes.
	waits bool
	// command is the program and its arguments, and dir where it runs.
	command []string
	dir     string
	// limit are the flags of go test by which a ring has only some of the part's tests.
	limit []string
	// showsProgress reports whether the output is shown while the part runs, not
	// only after a failure.
	showsProgress bool
}

// allParts returns all parts: the tests that need no cluster, module by module, the
// programs of a cluster, and the packages that start clusters, one by one, those
// that wait first.
func allParts(ctx context.Context) ([]part, error) {
	root, err := gomod.Root(repository)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program that makes the %s: %w", programsPart, err)
	}
	var all, onClusters []part
	for _, module := range modules {
		dir := filepath.Join(root, module)
		found, err := listPackages(ctx, dir)
		if err != nil {
			return nil, err
		}
		if len(found.quick) > 0 {
			// Go keeps results by the files of the module alone: those of other modules may
			// have changed, and the sidecar that a cluster runs.
			isKept := module == "."
			all = append(all, part{name: quickName(module), dir: dir, command: goTest(self, isKept, found.quick...)})
		}
		for _, pkg := range found.onClusters {
			name := strings.TrimPrefix(pkg, repository+"/")
			onClusters = append(onClusters, part{name: name, dir: dir, needsCluster: true, command: goTest(self, false, pkg)})
		}
	}
	programs := part{name: programsPart, waits: true, showsProgress: true, command: []string{self, "-programs"}}
	return slices.Concat(all, []part{programs}, waitingFirst(onClusters)), nil
}

func quickName(module string) string {
	if module == "." {
		return "unit tests"
	}
	return "unit tests of " + module
}

// goTest is the command that tests packages. The time limit is for tests that hang. Where
// Go keeps no results, the suite runs each test program for its CPU time.
func goTest(self string, isKept bool, pkgs ...string) []string {
	command := []string{"go", "test", "-timeout", "30m"}
	if !isKept {
		command = append(command, "-count", "1", "-exec", "'"+self+"' "+countTestsArgument)
	}
	return append(command, pkgs...)
}

// packages are import paths of packages with tests.
type packages struct{ quick, onClusters []string }

// listPackages finds the packages of a module that have tests.
func listPackages(ctx context.Context, dir string) (packages, error) {
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
	return classifyPackages(string(out)), nil
}

func classifyPackages(lines string) packages {
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
