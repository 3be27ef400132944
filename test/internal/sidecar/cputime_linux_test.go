package sidecar

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCPUTime: between two answers of getrusage(2), which counts microseconds.
func TestCPUTime(t *testing.T) {
	t.Parallel()
	before := ownCPUTime(t)
	used, err := cpuTime(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, used)
	require.GreaterOrEqual(t, used, before)
	require.LessOrEqual(t, used, ownCPUTime(t)+2*time.Microsecond)

	const beyondAll = 1 << 22 // no process has this id
	_, err = cpuTime(beyondAll)
	require.Error(t, err)
}

func ownCPUTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
