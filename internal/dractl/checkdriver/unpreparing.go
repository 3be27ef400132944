package checkdriver

import (
	"context"
	"fmt"
)

var unprepareStatements = []statement{
	{"unprepare-deleted", "unprepares a claim that is deleted", fromUnprepare, func(ctx context.Context, w *world) error {
		claims, _, err := w.prepareNewClaims(ctx, 1)
		if err != nil {
			return err
		}
		if err := w.deleteClaim(ctx, claims[0]); err != nil {
			return err
		}
		return w.unprepareClaims(ctx, claims[0])
	}},
	{"unprepare-twice", "succeeds when it unprepares a claim again", fromUnprepare, func(ctx context.Context, w *world) error {
		claims, _, err := w.prepareNewClaims(ctx, 1)
		if err != nil {
			return err
		}
		if err := w.unprepareClaims(ctx, claims[0]); err != nil {
			return err
		}
		if err := w.unprepareClaims(ctx, claims[0]); err != nil {
			return fmt.Errorf("unprepare again: %w", err)
		}
		return nil
	}},
	{"unprepare-unknown", "succeeds when it unprepares a claim that it has never prepared", fromUnprepare, func(ctx context.Context, w *world) error {
		claims, err := w.createClaims(ctx, 1)
		if err != nil {
			return err
		}
		return w.unprepareClaims(ctx, claims[0])
	}},
}
