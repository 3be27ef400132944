package main

import (
	"context"
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

// TestTestsAreInterrupted interrupts a part whose process waits for another one, as
// go test waits for tests.
func TestTestsAreInterrupted(t *testing.T) {
	t.Parallel()
	ended := t.TempDir() + "/ended"
	p := shell("a", `(trap 'touch `+ended+`; exit' INT; echo started; while :; do sleep 0.1; done); true`)
	p.showsProgress = true
	ctx, cancel := context.WithCancel(t.Context())
	err := runAll(ctx, &cancelAt{text: "started\n", cancel: cancel}, []part{p})
	require.ErrorIs(t, err, errInterrupted)
	require.FileExists(t, ended)
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
