package dractl

import (
	"bytes"
	"os"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// watchesAtTerminal has a person at a terminal look at the cluster, make the terminal
// larger, and end it by ^C.
func (s *shell) watchesAtTerminal() {
	s.Helper()
	command := s.command(s.Context(), "exec kwok-dractl status --watch")
	command.Env = append(command.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 10, Cols: 80})
	require.NoError(s, err)
	defer func() { _ = terminal.Close() }()
	seen := requireSeen(s.T, terminal, " more")
	require.Contains(s, seen, "\x1b[?25l", "the cursor is hidden")
	require.NoError(s, pty.Setsize(terminal, &pty.Winsize{Rows: 50, Cols: 200}))
	requireSeen(s.T, terminal, "h100-1 ")
	_, err = terminal.WriteString("\x03")
	require.NoError(s, err)
	requireSeen(s.T, terminal, "\x1b[?25h")
	require.NoError(s, command.Wait())
}

// requireSeen reads what is written to a terminal until a text is there.
func requireSeen(t *testing.T, terminal *os.File, text string) string {
	t.Helper()
	var seen bytes.Buffer
	buffer := make([]byte, 4096)
	for !bytes.Contains(seen.Bytes(), []byte(text)) {
		n, err := terminal.Read(buffer)
		seen.Write(buffer[:n])
		require.NoError(t, err, "%q is not in %q", text, seen.String())
	}
	return seen.String()
}
