package memorylimit

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/klog/v2"
)

const (
	// interval is that between two looks.
	interval = time.Minute
	// tooMuch is the share of its CPU time that a process spends on garbage only if the heap hardly fits its limit: with
	// GOGC=200 and room enough it is about a tenth.
	tooMuch = 0.5
	// leastCPU is the CPU time of an interval, a tenth of one core, below which nothing is lost.
	leastCPU = interval / 10
)

// CPUTime is the CPU time that a process has taken so far.
type CPUTime struct {
	// Collecting is that of the garbage collector, and Working that of everything else.
	Collecting, Working time.Duration
}

// ReadCPUTime returns that of this process, as of its last garbage collection.
func ReadCPUTime() CPUTime {
	// What the collector does on idle processors is left out.
	samples := []metrics.Sample{
		{Name: "/cpu/classes/user:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"},
		{Name: "/cpu/classes/gc/pause:cpu-seconds"},
	}
	metrics.Read(samples)
	took := func(i int) time.Duration { return time.Duration(samples[i].Value.Float64() * float64(time.Second)) }
	return CPUTime{Working: took(0), Collecting: took(1) + took(2) + took(3)}
}

// Warn logs, until ctx ends, each time that the garbage collector begins to take most of the CPU. Without a limit it does
// nothing.
func Warn(ctx context.Context, read func() CPUTime) {
	limit := debug.SetMemoryLimit(-1) // -1 only reads it
	if limit == math.MaxInt64 {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	wasTooMuch := false
	for before := read(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := read()
		share, isTooMuch := collectorShare(before, now)
		if isTooMuch && !wasTooMuch {
			klog.FromContext(ctx).Info("Garbage collection takes most of the CPU: raise GOMEMLIMIT", "share", fmt.Sprintf("%.0f %%", 100*share), "limitMiB", limit>>20)
		}
		before, wasTooMuch = now, isTooMuch
	}
}

// collectorShare returns the collector's share of the CPU time between two looks, and whether that is too much.
func collectorShare(before, now CPUTime) (share float64, isTooMuch bool) {
	collecting, working := now.Collecting-before.Collecting, now.Working-before.Working
	if collecting+working < leastCPU {
		return 0, false
	}
	share = float64(collecting) / float64(collecting+working)
	return share, share > tooMuch
}
