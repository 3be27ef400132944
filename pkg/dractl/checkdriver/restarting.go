package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/untrusted"
)

// mostLeft is how many entries of the registry are listed.
const mostLeft = 1000

func restartPrepare(ctx context.Context, w *world) error { return w.remembers(ctx, w.stop) }

func killPrepare(ctx context.Context, w *world) error { return w.remembers(ctx, w.kill) }

// remembers has a driver end and start while a claim is prepared.
func (w *world) remembers(ctx context.Context, end func() error) error {
	claims, before, err := w.prepareNew(ctx, 1)
	if err != nil {
		return err
	}
	if err := w.restart(ctx, end); err != nil {
		return err
	}
	return w.again(ctx, claims[0], before)
}

func restartUnprepare(ctx context.Context, w *world) error {
	claims, _, err := w.prepareNew(ctx, 1)
	if err != nil {
		return err
	}
	if err := w.restart(ctx, w.stop); err != nil {
		return err
	}
	return w.unprepare(ctx, claims[0])
}

// stops ends the driver, and looks for what is left. Stop is an error where a process of the
// group is. A driver that has just started may not listen to signals yet.
func stops(ctx context.Context, w *world) error {
	if err := watchQuietly(ctx); err != nil {
		return err
	}
	if err := w.stop(); err != nil {
		return err
	}
	left, err := untrusted.ReadDir(w.kubelet.root.Registry(), mostLeft)
	if err != nil {
		return fmt.Errorf("look for sockets: %w", err)
	}
	names := make([]string, len(left))
	for i, entry := range left {
		names[i] = entry.Name()
	}
	if len(names) > 0 {
		return errors.New("it has left in the registry: " + strings.Join(names, ", "))
	}
	return nil
}
