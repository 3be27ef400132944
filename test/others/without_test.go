package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLacking(t *testing.T) {
	t.Parallel()
	same, err := karpenterDRA.lacking("")
	require.NoError(t, err)
	require.Equal(t, karpenterDRA.sidecar, same.sidecar)
	for without, want := range map[string]string{"devices": "retireWhen: {}", "preparation": "prepareWhen:"} {
		s, err := karpenterDRA.lacking(without)
		require.NoError(t, err)
		require.Len(t, s.sidecar, len(karpenterDRA.sidecar)+2)
		require.Subset(t, s.sidecar, karpenterDRA.sidecar)
		said, err := os.ReadFile(s.sidecar[len(s.sidecar)-1])
		require.NoError(t, err)
		require.Contains(t, string(said), want)
	}
	_, err = karpenterDRA.lacking("pods")
	require.EqualError(t, err, `read -without "pods": want devices or preparation`)
}
