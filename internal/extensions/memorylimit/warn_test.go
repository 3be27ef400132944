package memorylimit

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// limitMemory sets GOMEMLIMIT for a test.
func limitMemory(t *testing.T, limit int64) {
	t.Helper()
	before := debug.SetMemoryLimit(limit)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
}

func TestWarn(t *testing.T) {
	limitMemory(t, 2<<30)
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var taken CPUTime
		go Warn(ctx, func() CPUTime { return taken })
		pass := func(collecting, working time.Duration) (logged string) {
			log.Reset()
			synctest.Wait()
			taken.Collecting += collecting
			taken.Working += working
			time.Sleep(interval)
			synctest.Wait()
			return log.String()
		}
		require.Empty(t, pass(10*time.Second, 50*time.Second), "a fleet starts")
		require.Empty(t, pass(2*time.Second, time.Second), "too little to matter")
		logged := pass(30*time.Second, 10*time.Second)
		require.Contains(t, logged, `"Garbage collection takes most of the CPU: raise GOMEMLIMIT" share="75 %" limitMiB=2048`)
		require.Empty(t, pass(30*time.Second, 10*time.Second), "it was said")
		require.Empty(t, pass(time.Second, 10*time.Second), "somebody deleted nodes")
		require.Contains(t, pass(30*time.Second, 10*time.Second), "raise GOMEMLIMIT")
	})
}

// TestReadCPUTime: Go has measurements of these names.
func TestReadCPUTime(t *testing.T) {
	t.Parallel()
	runtime.GC()
	before := ReadCPUTime()
	require.Positive(t, before.Collecting)
	require.Positive(t, before.Working)
	runtime.GC()
	require.Greater(t, ReadCPUTime().Collecting, before.Collecting)
}

func TestWithoutLimit(t *testing.T) {
	t.Parallel()
	Warn(t.Context(), func() CPUTime {
		t.Error("nothing is to be read")
		return CPUTime{}
	})
}
