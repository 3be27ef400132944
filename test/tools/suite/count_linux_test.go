package main

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCPUOfOrphans runs a part whose process leaves another one behind that
// computes, as a cluster's processes are.
func TestCPUOfOrphans(t *testing.T) {
	t.Parallel()
	done := t.TempDir() + "/done"
	p := shell("leaves an orphan", `(setsid sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; touch `+done+`' &); until [ -e `+done+` ]; do sleep 0.1; done; sleep 0.1`)
	s := &suite{out: io.Discard, total: 1}
	r := s.run(t.Context(), p.name, p)
	require.NoError(t, r.err)
	require.Greater(t, r.cpu, 50*time.Millisecond)
}

func TestStatusIsKept(t *testing.T) {
	t.Parallel()
	command, err := counted([]string{"sh", "-c", "exit 7"})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	require.Error(t, cmd.Run())
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
}
