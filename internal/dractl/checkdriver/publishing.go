package checkdriver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

var republishStatements = []statement{
	{"slices-away", "publishes slices again that the kubelet has deleted while the driver was away", fromKEP, func(ctx context.Context, w *world) error {
		return w.awaitRepublished(ctx, func() error {
			if err := w.stopDriver(); err != nil {
				return err
			}
			return w.deleteSlices(ctx, w.driver)
		})
	}},
	{slicesDeletedID, "publishes slices again that a kubelet has deleted at its start", fromKEP, func(ctx context.Context, w *world) error {
		return w.awaitRepublished(ctx, func() error { return w.deleteSlices(ctx, w.driver) })
	}},
}

var publishingStatements = []statement{
	{"registers", "registers within 30 s, with a service that the kubelet supports", fromRegistration, func(context.Context, *world) error { return nil }}, // the kubelet's half checks the rest
	// A driver may publish a slice without devices until it has found them, so it gets time for that.
	// One that finds none publishes what it should.
	{"publishes", "publishes complete pools for the node, which owns them", fromSlice, func(ctx context.Context, w *world) error {
		var found []resourcev1.ResourceSlice
		complete := func() (_ string, err error) {
			found, err = w.listPublished(ctx)
			if err != nil {
				return "", err
			}
			if len(found) == 0 {
				return w.describeMissing(), nil
			}
			return strings.Join(findIncomplete(found, w.node), "; "), nil
		}
		if err := waitUntil(ctx, complete); err != nil || len(deviceNames(found)) > 0 {
			return err
		}
		if err := waitQuietly(ctx); err != nil {
			return err
		}
		return waitUntil(ctx, complete)
	}},
}

// quiet is how long the driver is watched while it has nothing to do.
const quiet = 5 * time.Second

// awaitRepublished removes the slices, and waits until the driver has published them again.
func (w *world) awaitRepublished(ctx context.Context, remove func() error) error {
	if _, err := w.awaitDevices(ctx); err != nil {
		return err
	}
	before, err := w.listPublished(ctx)
	if err != nil {
		return err
	}
	plugin := w.calledPlugin()
	if err := remove(); err != nil {
		return err
	}
	if w.process == nil {
		if err := w.startDriver(ctx, plugin); err != nil {
			return err
		}
	}
	want := deviceNames(before)
	return waitUntil(ctx, func() (string, error) {
		found, err := w.listPublished(ctx)
		if err != nil {
			return "", err
		}
		if got := deviceNames(found); !slices.Equal(want, got) {
			return fmt.Sprintf("%d of %d devices are published", len(got), len(want)), nil
		}
		return "", nil
	})
}

// waitQuietly gives the driver time to do something that it must not do.
func waitQuietly(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("watch the slices: %w", ctx.Err())
	case <-time.After(quiet):
		return nil
	}
}
