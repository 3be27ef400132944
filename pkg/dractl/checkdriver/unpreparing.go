package checkdriver

import (
	"context"
	"fmt"
)

func unprepareDeleted(ctx context.Context, w *world) error {
	claims, _, err := w.prepareNew(ctx, 1)
	if err != nil {
		return err
	}
	if err := w.deleteClaim(ctx, claims[0]); err != nil {
		return err
	}
	return w.unprepare(ctx, claims[0])
}

func unprepareTwice(ctx context.Context, w *world) error {
	claims, _, err := w.prepareNew(ctx, 1)
	if err != nil {
		return err
	}
	if err := w.unprepare(ctx, claims[0]); err != nil {
		return err
	}
	if err := w.unprepare(ctx, claims[0]); err != nil {
		return fmt.Errorf("unprepare again: %w", err)
	}
	return nil
}

func unprepareUnknown(ctx context.Context, w *world) error {
	claims, err := w.newClaims(ctx, 1)
	if err != nil {
		return err
	}
	return w.unprepare(ctx, claims[0])
}
