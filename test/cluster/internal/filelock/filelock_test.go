package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "on", "demand.lock")
	first, err := Try(path)
	require.NoError(t, err)
	_, err = Try(path)
	require.ErrorIs(t, err, ErrTaken)

	told := 0
	second, err := Wait(t.Context(), path, func() { told++; first.Unlock() })
	require.NoError(t, err)
	require.Equal(t, 1, told)

	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err = Wait(ctx, path, func() { cancel(enough) })
	require.ErrorIs(t, err, enough)

	second.Unlock()
	third, err := Wait(t.Context(), path, func() { t.Error("the lock is free") })
	require.NoError(t, err)
	third.Unlock()
}

func TestUnlockNil(t *testing.T) {
	t.Parallel()
	var none *Lock
	none.Unlock()
}
