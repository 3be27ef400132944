package app

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGarbage(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0:         mostGarbage,
		1 << 20:   mostGarbage,
		9 << 20:   mostGarbage,
		18 << 20:  100,
		36 << 20:  50,
		120 << 20: leastGarbage,
		1 << 40:   leastGarbage,
	} {
		require.Equal(t, want, garbage(live), "%d MiB", live>>20)
	}
}

func TestAfterCollections(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	afterCollections(func() { called.Add(1) })
	for want := range int32(3) {
		require.Eventually(t, func() bool {
			runtime.GC()
			return called.Load() > want
		}, time.Minute, time.Millisecond)
	}
	require.NotZero(t, liveHeap())
}
