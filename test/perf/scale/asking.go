package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// measureAsking looks at the fleet as a user does, where all is done.
func (w *world) measureAsking(ctx context.Context, a *asking) error {
	fmt.Fprintln(os.Stderr, "  Opening the page ...")
	process, err := w.startSidecar(ctx)
	if err != nil {
		return err
	}
	if err := w.awaitIdle(ctx, process); err != nil {
		return err
	}
	for _, step := range []struct {
		path string
		took *float64
	}{{"/", &a.Page}, {"/api/devices", &a.Devices}} {
		start := time.Now()
		if _, err := process.Get(ctx, step.path); err != nil {
			return err
		}
		*step.took = time.Since(start).Seconds()
	}
	if a.Peak, err = process.PeakMemory(); err != nil {
		return err
	}
	if err := process.Stop(); err != nil {
		return err
	}
	return w.measureStatus(ctx, a)
}

func (w *world) measureStatus(ctx context.Context, a *asking) error {
	programs, err := sidecar.Programs()
	if err != nil {
		return err
	}
	status := exec.CommandContext(ctx, filepath.Join(programs, "kwok-dractl"), "status")
	status.Env = append(os.Environ(), "KUBECONFIG="+w.cluster.Kubeconfig())
	start := time.Now()
	if printed, err := status.CombinedOutput(); err != nil {
		return fmt.Errorf("kwok-dractl status: %w: %s", err, printed)
	}
	a.Status = time.Since(start).Seconds()
	return nil
}
