// Command matrix runs the tests on real clusters on one Kubernetes version after
// the other, and prints one table of what each can and cannot do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// versions are the supported minors of Kubernetes.
var versions = []string{"1.34", "1.35", "1.36", "1.37"}

var errFailed = errors.New("the tests do not pass on every version")

func main() {
	m := &matrix{}
	flag.StringVar(&m.only, "run", "", "run only the tests that match, as in go test; default: all")
	flag.StringVar(&m.logs, "logs", filepath.Join(sidecar.Root(), "bin", "matrix"), "directory for logs")
	flag.DurationVar(&m.timeout, "timeout", time.Hour, "how long the tests of one version may take")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: matrix [flags] [VERSION ...], for example: matrix -run TestPublish 1.34 1.37")
		flag.PrintDefaults()
	}
	flag.Parse()
	m.versions = flag.Args()
	if len(m.versions) == 0 {
		m.versions = versions
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := m.runVersions(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// matrix is what to run, and where to keep what it says.
type matrix struct {
	versions []string
	only     string
	logs     string
	timeout  time.Duration
}

// runVersions runs the tests on each version. A version on which they cannot even start
// is a row of the table like the others.
func (m *matrix) runVersions(ctx context.Context) error {
	if err := os.MkdirAll(m.logs, 0o755); err != nil {
		return fmt.Errorf("create directory for logs: %w", err)
	}
	var rows []row
	for _, version := range m.versions {
		if ctx.Err() != nil {
			break
		}
		r := m.runVersion(ctx, version)
		fmt.Printf("Kubernetes %s: %d of %d tests passed in %s\n\n", r.version, r.passed, r.testsRun(), r.took.Round(time.Second))
		rows = append(rows, r)
	}
	if err := printTable(os.Stdout, rows); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", ctx.Err())
	}
	for _, r := range rows {
		if r.hasFailed() {
			return errFailed
		}
	}
	return nil
}
