package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		require.NoError(t, until(t.Context(), time.Second, func(context.Context) error {
			if checks++; checks < 3 {
				return errors.New("not yet")
			}
			return nil
		}))
		require.Equal(t, 3, checks)

		err := until(t.Context(), time.Second, func(ctx context.Context) error {
			if checks++; checks < 6 {
				return errors.New("a claim is missing")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		require.EqualError(t, err, "a claim is missing")
	})
}
