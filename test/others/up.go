package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// up starts what a suite is about on its cluster, and leaves it to the user until ctx ends, or to a command until that ends.
func up(ctx context.Context, r *runner, wanted selection, command []string) error {
	if r.focus != "" {
		return fmt.Errorf("read -focus %q: -up runs no specs", r.focus)
	}
	chosen, err := wanted.suites(ctx)
	if err != nil {
		return err
	}
	s := chosen[0]
	switch {
	case len(chosen) > 1:
		return fmt.Errorf("read -up: it is for one suite, choose one with -suite, such as %s", s.name)
	case s.origin != nil && s.checkout.Dir == "":
		return errors.New(s.origin.advice(s.name))
	}
	versions, err := build.Versions{}.Resolve()
	if err != nil {
		return err
	}
	if s, err = s.on(versions.Kubernetes).lacking(r.without); err != nil {
		return err
	}
	if _, err := sidecar.Programs(); err != nil {
		return err
	}
	if len(command) > 0 {
		if err := os.MkdirAll(r.logs, 0o755); err != nil {
			return fmt.Errorf("create directory for logs: %w", err)
		}
		// The command may make nodes of its own, which no kubelet keeps alive.
		s.cluster.ExtraArgs = map[string][]string{cluster.ControllerManager: {"node-monitor-grace-period=24h"}}
	}
	w, err := startWorld(ctx, s)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		err := runCommand(ctx, command, cmp.Or(w.installed.kubeconfig, w.Kubeconfig()))
		return errors.Join(err, w.keepLogs(r.logs, s.name), w.stop())
	}
	fmt.Printf("What %s is about runs until you press Ctrl-C. In another terminal:\n\n%s\n", s.name, w.Environment())
	if w.installed.kubeconfig != "" {
		fmt.Printf("export KUBECONFIG=%s\n", w.installed.kubeconfig)
	}
	if w.installed.metrics != "" {
		fmt.Printf("export METRICS=%s\n", w.installed.metrics)
	}
	fmt.Println()
	<-ctx.Done()
	return w.stop()
}

// runCommand runs a command of the user with access to the cluster.
func runCommand(ctx context.Context, command []string, kubeconfig string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	return nil
}
