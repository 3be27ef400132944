package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/cdi"
)

var restartStatements = []statement{
	{"restart-slices", "registers after a restart, and writes no slice that is as it should be", fromSlice, func(ctx context.Context, w *world) error {
		if _, err := w.awaitDevices(ctx); err != nil {
			return err
		}
		before, err := w.listPublished(ctx)
		if err != nil {
			return err
		}
		if err := w.restartDriver(ctx, w.stopDriver); err != nil {
			return err
		}
		if err := waitQuietly(ctx); err != nil {
			return err
		}
		now, err := w.listPublished(ctx)
		if err != nil {
			return err
		}
		return findRewritten(before, now)
	}},
	{"restart-prepare", "gives the same answer to the same claim after a restart", fromPrepare, func(ctx context.Context, w *world) error { return w.checkRemembers(ctx, w.stopDriver) }},
	{"kill-prepare", "gives the same answer to the same claim after it was killed", fromPrepare, func(ctx context.Context, w *world) error {
		return w.checkRemembers(ctx, func() error {
			killed := w.process
			w.process = nil
			return killed.Kill()
		})
	}},
	// A reboot leaves the driver its own files, and an empty folder of CDI specs. The kubelet prepares the
	// claims again when it starts the containers of their Pods again.
	{"reboot-prepare", "writes the CDI specs of a claim again after a reboot, which empties their folder", fromPrepare, func(ctx context.Context, w *world) error {
		prepared, _, err := w.prepareWithCDI(ctx)
		if err != nil {
			return err
		}
		err = w.restartDriver(ctx, func() error {
			if err := w.stopDriver(); err != nil {
				return err
			}
			return errors.Join(os.RemoveAll(w.cdiFolder()), os.Mkdir(w.cdiFolder(), 0o755))
		})
		if err != nil {
			return err
		}
		now, err := w.prepareClaims(ctx, prepared)
		if err != nil {
			return fmt.Errorf("prepare again: %w", err)
		}
		specs, err := cdi.Read("/", w.cdiFolder())
		if err != nil {
			return err
		}
		return specs.Check(now.cdiDevicesOf(prepared.UID))
	}},
	{"restart-unprepare", "unprepares a claim after a restart", fromUnprepare, func(ctx context.Context, w *world) error {
		claims, _, err := w.prepareNewClaims(ctx, 1)
		if err != nil {
			return err
		}
		if err := w.restartDriver(ctx, w.stopDriver); err != nil {
			return err
		}
		return w.unprepareClaims(ctx, claims[0])
	}},
}

// mostLeft is how many entries of the registry are listed.
const mostLeft = 1000

// checkRemembers ends and starts the driver while a claim is prepared, and prepares the claim again.
func (w *world) checkRemembers(ctx context.Context, end func() error) error {
	claims, before, err := w.prepareNewClaims(ctx, 1)
	if err != nil {
		return err
	}
	if err := w.restartDriver(ctx, end); err != nil {
		return err
	}
	return w.prepareAgain(ctx, claims[0], before)
}
