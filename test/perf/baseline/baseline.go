// Package baseline runs what kwok-dra is measured against: plain client-go
// programs, which do as much of its work as they are asked to, and nothing else.
// Each is a process of its own that is started as the sidecar is, so that both are
// measured alike.
package baseline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// The work of a baseline. A raw writer is told beforehand what to write. A
// watching one learns of it, and sees its writes come back, as whoever publishes
// or prepares must; it has no templates and repairs nothing.
const (
	RawSlices      = "raw-slices"
	WatchingSlices = "watching-slices"
	RawClaims      = "raw-claims"
	WatchingClaims = "watching-claims"
	// Lists has plain informers list all that the sidecar lists, and write nothing.
	Lists = "lists"
)

// BeginSignal has a baseline that is ready begin to write.
const BeginSignal = syscall.SIGUSR1

// Binary builds the baselines' program and returns its path. It builds once per
// process.
var Binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", "baseline")
	if err := sidecar.Build(filepath.Join(sidecar.Root(), "test"), path, "./perf/baseline/program"); err != nil {
		return "", err
	}
	return path, nil
})

// Start starts a baseline, and returns when it is ready: its caches are complete,
// or it has read what it is to write.
func Start(ctx context.Context, c *cluster.Cluster, kubeconfig, work string, arguments ...string) (*sidecar.Process, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	all := append([]string{"--kubeconfig", kubeconfig, "--work", work}, arguments...)
	process, err := sidecar.LaunchProgram(c, binary, all...)
	if err != nil {
		return nil, err
	}
	if err := process.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, process.Kill())
	}
	return process, nil
}

// Begin has a baseline that is ready begin to write.
func Begin(process *sidecar.Process) error {
	if err := syscall.Kill(process.PID(), BeginSignal); err != nil {
		return fmt.Errorf("have the baseline begin: %w", err)
	}
	return nil
}
