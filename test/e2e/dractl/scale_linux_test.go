package dractl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestStopScale: Ctrl-C at a terminal ends scale, which says where it is, and the same command
// goes on from there.
func TestStopScale(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("kubectl apply --server-side -k " + sidecar.Root() + "/kustomize/crd")
	s.sidecar("--enable-crds")
	command := s.command(t.Context(), "exec kwok-dractl scale nvidia-t4 --nodes 2000")
	command.Env = append(command.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	requireSeen(t, terminal, "█")
	_, err = terminal.WriteString("\x03")
	require.NoError(t, err)
	told := requireSeen(t, terminal, "the same command goes on from there")
	require.Contains(t, told, "\r\x1b[Kkwok-dractl: stopped: ", "the bar is wiped")
	require.Error(t, command.Wait())
	require.Equal(t, cli.ExitFailed, command.ProcessState.ExitCode())
	made := strings.Fields(s.must("kubectl get nodes -l dra.kwok.x-k8s.io/scale=nvidia-t4 -o name"))
	require.NotEmpty(t, made)
	require.Less(t, len(made), 2000)

	want := len(made) + 50
	require.Contains(t, s.must(fmt.Sprint("kwok-dractl scale nvidia-t4 --nodes ", want)), fmt.Sprintf("%d of %d nodes Ready, %d of %d pools complete", want, want, want, want))
	require.Subset(t, strings.Fields(s.must("kubectl get nodes -l dra.kwok.x-k8s.io/scale=nvidia-t4 -o name")), made)
}
