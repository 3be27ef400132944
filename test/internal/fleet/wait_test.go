package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAwait waits for as long as something changes, and names what it waits for
// when nothing does.
func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatched()
		var told []int
		w.Progress = func(what string, have, want int) {
			require.Equal(t, "things", what)
			require.Equal(t, 5, want)
			told = append(told, have)
		}
		have := 0
		go func() {
			for range 4 {
				time.Sleep(patience - time.Second)
				w.mu.Lock()
				have++
				w.wakeWaiters()
				w.mu.Unlock()
			}
		}()
		count := func() int { return have }
		err := w.awaitCount(t.Context(), "things", 5, count)
		require.EqualError(t, err, "wait for 5 things: there are 4 after 4m56s, and for the last 1m0s nothing has changed")
		require.Equal(t, 0, told[0])
		require.Equal(t, 4, told[len(told)-1])
		require.NoError(t, w.awaitCount(t.Context(), "things", 4, count))

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, w.awaitCount(ended, "things", 5, count), context.Canceled)
	})
}
