package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// ofTests has the suite run a part as go test has it run a test program.
func ofTests(t *testing.T, p part) part {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p.command = append([]string{self, countTestsArgument}, p.command...)
	return p
}

// TestCPUOfOrphans runs a part whose process leaves another one behind that
// computes, as a cluster's processes are.
func TestCPUOfOrphans(t *testing.T) {
	t.Parallel()
	done := t.TempDir() + "/done"
	p := shell("leaves an orphan", `echo cluster 4.5s >>$`+cluster.TimesEnv+`; (setsid sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; touch `+done+`' &); until [ -e `+done+` ]; do sleep 0.1; done; sleep 0.1`)
	s := &suite{out: io.Discard, total: 1}
	r := s.runPart(t.Context(), p.name, ofTests(t, p))
	require.NoError(t, r.err)
	require.Greater(t, r.cpu-r.building, 50*time.Millisecond)
	require.GreaterOrEqual(t, r.building, time.Duration(0))
	require.Equal(t, 1, r.clusters)
	require.Equal(t, 4500*time.Millisecond, r.starting)
}

// TestTestsAreInterrupted interrupts a part whose process waits for another one, as
// go test waits for tests.
func TestTestsAreInterrupted(t *testing.T) {
	t.Parallel()
	ended := t.TempDir() + "/ended"
	p := shell("a", `(trap 'touch `+ended+`; exit' INT; echo started; while :; do sleep 0.1; done); true`)
	p.showsProgress = true
	ctx, cancel := context.WithCancel(t.Context())
	err := runAll(ctx, &cancelAt{text: "started\n", cancel: cancel}, []part{ofTests(t, p)})
	require.ErrorIs(t, err, errInterrupted)
	require.FileExists(t, ended)
}

func TestStatusIsKept(t *testing.T) {
	t.Parallel()
	command, err := countedCommand([]string{"sh", "-c", "exit 7"})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	require.Error(t, cmd.Run())
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
}
