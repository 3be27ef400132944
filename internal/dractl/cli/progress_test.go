package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProgress says nothing of what is quick, and from time to time what takes
// long.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		streams := Streams{ErrOut: &told}
		quick := streams.Progress("listing Pods", 0)
		time.Sleep(patience - time.Millisecond)
		quick.Done()
		quick.Done()
		require.Empty(t, told.String())

		long := streams.Progress("placing Pods", 100)
		long.Step()
		time.Sleep(patience + again/2)
		for range 49 {
			long.Step()
		}
		time.Sleep(again)
		long.Done()
		time.Sleep(time.Minute)
		require.Equal(t, "placing Pods ... 1 of 100, 2 s\nplacing Pods ... 50 of 100, 7 s\n", told.String())

		told.Reset()
		unknown := streams.Progress("listing Pods", 0)
		time.Sleep(patience + time.Millisecond)
		unknown.Done()
		require.Equal(t, "listing Pods ... 2 s\n", told.String())
	})
}
