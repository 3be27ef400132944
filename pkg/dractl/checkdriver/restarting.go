package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/cdi"
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

// rebootPrepare has a driver start with what a reboot leaves: its own files, and an empty folder of CDI specs. The
// kubelet prepares the claims of Pods again whose containers it starts again.
func rebootPrepare(ctx context.Context, w *world) error {
	prepared, _, err := w.prepareCDI(ctx)
	if err != nil {
		return err
	}
	err = w.restart(ctx, func() error {
		if err := w.stop(); err != nil {
			return err
		}
		return errors.Join(os.RemoveAll(w.cdi()), os.Mkdir(w.cdi(), 0o755))
	})
	if err != nil {
		return err
	}
	now, err := w.prepare(ctx, prepared)
	if err != nil {
		return fmt.Errorf("prepare again: %w", err)
	}
	specs, err := cdi.Read("/", w.cdi())
	if err != nil {
		return err
	}
	return specs.Check(now.cdiDevices(prepared.UID))
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
