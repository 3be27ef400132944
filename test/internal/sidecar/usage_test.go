package sidecar

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatusBytes(t *testing.T) {
	t.Parallel()
	const status = "Name:\tkwok-dra\nVmHWM:\t  204800 kB\nVmRSS:\t  1024 kB\nThreads:\tx\n"
	for field, want := range map[string]int64{"VmHWM": 200 * MiB, "VmRSS": MiB} {
		bytes, err := statusBytes(status, field)
		require.NoError(t, err)
		require.Equal(t, want, bytes, field)
	}
	for _, odd := range []string{"Threads", "VmSwap"} {
		_, err := statusBytes(status, odd)
		require.Error(t, err, odd)
	}
}

func TestHeapAlloc(t *testing.T) {
	t.Parallel()
	bytes, err := HeapIn("heap profile: 1: 2 [3: 4]\n\n# runtime.MemStats\n# Alloc = 1\n# HeapAlloc = 5982704\n# HeapSys = 7\n")
	require.NoError(t, err)
	require.EqualValues(t, 5982704, bytes)
	_, err = HeapIn("")
	require.ErrorIs(t, err, errNoField)
}
