package sidecar

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	variables, err := containerEnvironment()
	require.NoError(t, err)
	require.Equal(t, []string{"GOGC=200", "GOMEMLIMIT=200MiB"}, variables)
}
