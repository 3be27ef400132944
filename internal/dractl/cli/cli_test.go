package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, ExitCode(nil))
	require.Equal(t, 1, ExitCode(fmt.Errorf("two Pods: %w", ErrNegative)))
	require.Equal(t, 2, ExitCode(errors.New("no cluster")))
}
