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
func up(ctx context.Context, wanted selection, out io.Writer) error {
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
	if _, err := sidecar.Programs(); err != nil {
		return err
	}
	w, err := startWorld(ctx, s.on(versions.Kubernetes))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "What %s is about runs until you press Ctrl-C. In another terminal:\n\n%s\n\n", s.name, w.Environment())
	<-ctx.Done()
	return w.stop()
}
