package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func start(t *testing.T, script string) (p *Process, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	p, err := Start(t.Context(), Options{Arguments: []string{"/bin/sh", "-c", script}, Environment: []string{"WORD=hello"}, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	return p, log
}

// says waits until a program has written something.
func says(t *testing.T, log, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(log)
		return err == nil && string(content) == text
	}, time.Minute, 10*time.Millisecond)
}

func TestErr(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "echo $WORD; exit 3")
	require.Eventually(t, func() bool { return p.Err() != nil }, time.Minute, 10*time.Millisecond)
	require.EqualError(t, p.Err(), "sh has ended: exit status 3; its last lines:\nhello")
}

// TestStop ends what a program has started too.
func TestStop(t *testing.T) {
	t.Parallel()
	p, log := start(t, "sleep 1000 & echo up; wait")
	says(t, log, "up\n")
	require.NoError(t, p.Err())
	require.True(t, p.Running())
	require.NoError(t, p.Stop(time.Minute))
	require.False(t, p.Running())
}

func TestStopKills(t *testing.T) {
	t.Parallel()
	p, log := start(t, "trap '' TERM; echo up; while true; do sleep 1000; done")
	says(t, log, "up\n")
	require.ErrorContains(t, p.Stop(time.Millisecond), "sh has not ended 1ms after SIGTERM")
	require.False(t, p.Running())
}

// TestTail: a program that prints without an end is not kept whole.
func TestTail(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte("a\nb\n"), 0o600))
	require.Equal(t, []string{"a", "b"}, Tail(log))
	file, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, file.Truncate(1<<40)) // without taking room on the disk
	_, err = file.WriteString("\nlast\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	lines := Tail(log)
	require.Equal(t, "last", lines[len(lines)-1])
}
