package dractl

import (
	"bytes"
	"os"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestWatch has a person at a terminal look at a cluster, make the terminal larger, and
// end it by ^C.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("kubectl apply --server-side -k " + sidecar.Root() + "/kustomize/crd")
	s.must("kubectl create configmap -n kube-system kwok-dra --from-file templates.yaml")
	s.sidecar()
	s.must("kubectl apply -f nodes.yaml")
	s.eventually("kwok-dractl status -o json | grep -q '\"node\": \"h100-0\"'")
	command := s.command(t.Context(), "exec kwok-dractl status --watch")
	command.Env = append(command.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 10, Cols: 80})
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	seen := requireSeen(t, terminal, " more")
	require.Contains(t, seen, "\x1b[?25l", "the cursor is hidden")
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 50, Cols: 200}))
	requireSeen(t, terminal, "h100-1 ")
	_, err = terminal.WriteString("\x03")
	require.NoError(t, err)
	requireSeen(t, terminal, "\x1b[?25h")
	require.NoError(t, command.Wait())
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
