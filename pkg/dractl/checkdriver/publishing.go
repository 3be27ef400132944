package checkdriver

import (
	"context"
	"fmt"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// quiet is how long a driver is watched that has to do nothing.
const quiet = 5 * time.Second

// registers is true when a driver is up: the kubelet's half checks the rest.
func registers(context.Context, *world) error { return nil }

// publishes waits until the pools are complete. A driver may publish a slice without
// devices until it has found them, so it has some time to do so; one that finds none
// publishes what it should.
func publishes(ctx context.Context, w *world) error {
	var found []resourcev1.ResourceSlice
	complete := func() (_ string, err error) {
		found, err = w.published(ctx)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return w.nothing(), nil
		}
		return strings.Join(incomplete(found, w.node), "; "), nil
	}
	if err := until(ctx, complete); err != nil || len(names(found)) > 0 {
		return err
	}
	if err := watchQuietly(ctx); err != nil {
		return err
	}
	return until(ctx, complete)
}

// slicesAway has the driver come back too late, after 30 s.
func slicesAway(ctx context.Context, w *world) error {
	return w.without(ctx, func() error {
		if err := w.stop(); err != nil {
			return err
		}
		return w.deleteSlices(ctx, w.driver)
	})
}

// slicesDeleted has a kubelet start while the driver runs.
func slicesDeleted(ctx context.Context, w *world) error {
	return w.without(ctx, func() error { return w.deleteSlices(ctx, w.driver) })
}

// without has the slices go, and waits until they are back.
func (w *world) without(ctx context.Context, remove func() error) error {
	if _, err := w.awaitDevices(ctx); err != nil {
		return err
	}
	before, err := w.published(ctx)
	if err != nil {
		return err
	}
	plugin := w.current()
	if err := remove(); err != nil {
		return err
	}
	if w.process == nil {
		if err := w.start(ctx, plugin); err != nil {
			return err
		}
	}
	return w.awaitAll(ctx, before)
}

// restartSlices looks at the slices for a while after a restart.
func restartSlices(ctx context.Context, w *world) error {
	if _, err := w.awaitDevices(ctx); err != nil {
		return err
	}
	before, err := w.published(ctx)
	if err != nil {
		return err
	}
	if err := w.restart(ctx, w.stop); err != nil {
		return err
	}
	if err := watchQuietly(ctx); err != nil {
		return err
	}
	now, err := w.published(ctx)
	if err != nil {
		return err
	}
	return rewritten(before, now)
}

// watchQuietly gives a driver time to do what it must not do.
func watchQuietly(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("watch the slices: %w", ctx.Err())
	case <-time.After(quiet):
		return nil
	}
}
