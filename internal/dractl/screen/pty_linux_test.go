package screen

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openPTY opens both ends of a pseudo terminal.
func openPTY(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return master, terminal
}

// TestPTY has a screen on a real terminal, which the user makes larger.
func TestPTY(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := openPTY(t)
	s := Of(terminal)
	require.NotNil(t, s)
	for _, size := range []unix.Winsize{{Col: 30, Row: 5}, {Col: 99, Row: 50}} {
		require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &size))
		width, height := s.Size()
		require.Equal(t, []int{int(size.Col), int(size.Row)}, []int{width, height})
	}
	require.NoError(t, s.Show("text\n"))
	require.NoError(t, s.Close())
	want := begin + home + clearLine + "text\r\n" + clearRest + end + "text\r\n"
	got := make([]byte, len(want))
	_, err := io.ReadFull(master, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))

	t.Setenv("TERM", "dumb")
	require.Nil(t, Of(terminal))

	t.Setenv("COLUMNS", "")
	require.Equal(t, 99, Width(terminal))
	require.Zero(t, Width(io.Discard), "a pipe has no limit")
	t.Setenv("COLUMNS", "70")
	require.Equal(t, 70, Width(terminal))
}
