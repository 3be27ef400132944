package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKillAll(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	mine := []*exec.Cmd{sleeper(t, dir), sleeper(t, dir)}
	bystanders := []*exec.Cmd{
		sleeper(t, other),
		sleeper(t, dir+"-longer"),
		reader(t, filepath.Join(dir, "file")),
	}
	found, err := In(dir)
	require.NoError(t, err)
	require.Len(t, found, len(mine))

	require.NoError(t, KillAll(t.Context(), dir))
	found, err = In(dir)
	require.NoError(t, err)
	require.Empty(t, found)
	for _, cmd := range mine {
		require.Error(t, cmd.Wait())
	}
	for _, cmd := range bystanders {
		require.NoError(t, cmd.Process.Signal(syscall.Signal(0)))
	}
	require.NoError(t, KillAll(t.Context(), dir), "nothing to do")
}

// A process has no command line for the first moment of its life, and must not
// be overlooked then.
func TestJustStarted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what ps shows then differs")
	}
	dir := t.TempDir()
	for range 100 {
		started := startSleeper(t, dir)
		p, found, err := inspectProcess(started.Process.Pid)
		require.NoError(t, err)
		require.True(t, found && (p.runsIn(dir) || p.turning))
		require.NoError(t, started.Process.Kill())
		require.Error(t, started.Wait())
	}
	started := startSleeper(t, dir)
	require.NoError(t, KillAll(t.Context(), dir))
	p, found, err := inspectProcess(started.Process.Pid)
	require.NoError(t, err)
	require.True(t, found && p.ended, "only its result is left")
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine, other := sleeper(t, dir), sleeper(t, t.TempDir())
	p, found, err := Find(dir, mine.Process.Pid)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, filepath.Join(dir, "sleep"), p.Program)
	// As if the number had been given to somebody else in the meantime.
	_, found, err = Find(dir, other.Process.Pid)
	require.NoError(t, err)
	require.False(t, found)

	require.NoError(t, p.Signal(syscall.SIGTERM))
	require.NoError(t, Until(t.Context(), "wait", func() (bool, error) {
		// Nobody has waited for it yet: in the process table, but not running.
		running, err := p.Running()
		return !running, err
	}))
	_, found, err = Find(dir, mine.Process.Pid)
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, p.Signal(syscall.SIGTERM), "it has ended")
	require.Error(t, mine.Wait())
	running, err := p.Running()
	require.NoError(t, err)
	require.False(t, running)
}

func TestSignalSparesSuccessor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	successor := sleeper(t, dir)
	p, found, err := Find(dir, successor.Process.Pid)
	require.NoError(t, err)
	require.True(t, found)
	p.started = "before"
	require.NoError(t, p.Signal(syscall.SIGKILL))
	require.NoError(t, successor.Process.Signal(syscall.Signal(0)))
	running, err := p.Running()
	require.NoError(t, err)
	require.False(t, running)
}

func TestUntil(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	err := Until(ctx, "wait for it", func() (bool, error) { cancel(enough); return false, nil })
	require.ErrorIs(t, err, enough)
	require.EqualError(t, err, "wait for it: enough")
}

// sleeper runs a program of dir and returns when it can be seen.
func sleeper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := startSleeper(t, dir)
	_, found, err := Find(dir, cmd.Process.Pid)
	require.NoError(t, err)
	require.True(t, found)
	return cmd
}

func startSleeper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	link := filepath.Join(dir, "sleep")
	if err := os.Symlink(sleep, link); err != nil {
		require.ErrorIs(t, err, os.ErrExist)
	}
	return run(t, exec.Command(link, "1000"))
}

// reader runs a program that works with a file, but does not come from its directory.
func reader(t *testing.T, file string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read line", file)
	// It reads until the other end of the pipe is closed.
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	return run(t, cmd)
}

func run(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}
