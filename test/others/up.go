package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// up starts what a suite is about on its cluster, and leaves it to the user until ctx ends.
func up(ctx context.Context, r *runner, wanted selection, out io.Writer) error {
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
	w, err := startWorld(ctx, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "What %s is about runs until you press Ctrl-C. In another terminal:\n\n%s\n", s.name, w.Environment())
	if w.installed.kubeconfig != "" {
		fmt.Fprintf(out, "export KUBECONFIG=%s\n", w.installed.kubeconfig)
	}
	if w.installed.metrics != "" {
		fmt.Fprintf(out, "export METRICS=%s\n", w.installed.metrics)
	}
	fmt.Fprintln(out)
	<-ctx.Done()
	return w.stop()
}
