package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// others are the folders of e2e that are not about the sidecar on a cluster.
var others = []string{"browser", "dashboards", "docs", "dractl", "helm"}

// endLimit bounds the wait for tests to end that were told to.
const endLimit = 20 * time.Second

// runVersion runs the tests on one version. What keeps them from running is in
// the row.
func (m *matrix) runVersion(ctx context.Context, version string) row {
	r := row{version: version}
	log, err := os.Create(filepath.Join(m.logs, version+".log"))
	if err != nil {
		r.problem = fmt.Sprint("create log: ", err)
		return r
	}
	defer func() { _ = log.Close() }()
	r.log = log.Name()
	fmt.Printf("Kubernetes %s, log %s\n", version, r.log)
	programs, err := build.Ensure(ctx, build.Options{
		Versions: build.Versions{Kubernetes: version},
		Output:   io.MultiWriter(os.Stderr, log),
	})
	if err != nil {
		fmt.Fprintln(log, err)
		r.problem = "does not build: " + firstLine(err.Error())
		return r
	}
	r.version = strings.TrimPrefix(programs.Versions.Kubernetes, "v")
	start := time.Now()
	results := newResults(log, os.Stdout)
	err = m.testVersion(ctx, r.version, results, log)
	r.took = time.Since(start)
	r.counts = results.countResults()
	if err != nil && len(r.failed) == 0 {
		r.problem = "tests did not end well: " + err.Error()
	}
	return r
}

// testVersion runs go test, and has results take in what it says.
func (m *matrix) testVersion(ctx context.Context, version string, results *results, log io.Writer) error {
	args := []string{"test", "-json", "-count=1", "-timeout", m.timeout.String()}
	if m.only != "" {
		args = append(args, "-run", m.only)
	}
	dir := filepath.Join(sidecar.Root(), "test", "e2e")
	packages, err := packagesIn(dir)
	if err != nil {
		return err
	}
	// One package after the other, for each has clusters of its own.
	args = append(args, "-p=1")
	test := exec.CommandContext(ctx, "go", append(args, packages...)...)
	test.Dir = dir
	test.Env = append(os.Environ(), build.KubernetesVersionEnv+"="+version, "CGO_ENABLED=0", "GOWORK=off",
		cluster.LogsEnv+"="+filepath.Join(m.logs, version))
	test.Stdout, test.Stderr = results, log
	// A group of its own, to end go and the tests that it has started alike. Their
	// clusters end with them.
	test.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	test.Cancel = func() error { return syscall.Kill(-test.Process.Pid, syscall.SIGTERM) }
	test.WaitDelay = endLimit
	if err := test.Run(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

// packagesIn lists the packages of e2e, except those in others.
func packagesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	packages := []string{"."}
	for _, entry := range entries {
		if entry.IsDir() && !slices.Contains(others, entry.Name()) {
			packages = append(packages, "./"+entry.Name())
		}
	}
	return packages, nil
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
