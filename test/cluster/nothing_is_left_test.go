package cluster

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

// patience is for conditions that usually hold within a second or two, however busy
// the machine.
const patience = 5 * time.Minute

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ending string
		act    func(t *testing.T, owner *owner)
	}{
		"after SIGKILL": {ending: "wait", act: func(t *testing.T, owner *owner) {
			owner.waitReady(t)
			require.NoError(t, owner.cmd.Process.Kill())
		}},
		"after SIGKILL in the middle of the start": {ending: "wait", act: func(t *testing.T, owner *owner) {
			eventually(t, "a component runs", func() bool {
				found, err := process.In(filepath.Join(owner.home, "clusters"))
				return err == nil && len(found) > 0
			})
			require.NoError(t, owner.cmd.Process.Kill())
		}},
		"after Ctrl-C": {ending: "wait", act: func(t *testing.T, owner *owner) {
			owner.waitReady(t)
			// As a terminal does it: to the whole process group.
			require.NoError(t, syscall.Kill(-owner.cmd.Process.Pid, syscall.SIGINT))
		}},
		"after a panic": {ending: "panic", act: func(*testing.T, *owner) {}},
		"after an exit": {ending: "exit", act: func(*testing.T, *owner) {}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := startOwner(t, test.ending)
			test.act(t, owner)
			require.Error(t, owner.cmd.Wait())
			requireGone(t, owner.home)
		})
	}
}

// owner is another process that has started a cluster.
type owner struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	home string
}

func startOwner(t *testing.T, ending string) *owner {
	t.Helper()
	// A pipe of ours: the one of the package would be closed by Wait.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close() })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), endingEnv+"="+ending)
	cmd.Stdout = write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	t.Cleanup(func() { _ = cmd.Process.Kill() })

	o := &owner{cmd: cmd, out: bufio.NewReader(read)}
	o.home = o.line(t)
	require.DirExists(t, o.home)
	return o
}

func (o *owner) waitReady(t *testing.T) {
	t.Helper()
	require.Equal(t, "ready", o.line(t))
}

func (o *owner) line(t *testing.T) string {
	t.Helper()
	line, err := o.out.ReadString('\n')
	if err != io.EOF {
		require.NoError(t, err)
	}
	return strings.TrimSpace(line)
}

// requireGone waits until nothing is left of the cluster in the directory home.
func requireGone(t *testing.T, home string) {
	t.Helper()
	eventually(t, "directory "+home+" is removed", func() bool {
		_, err := os.Stat(home)
		return os.IsNotExist(err)
	})
	eventually(t, "all processes of "+home+" have ended, and the watchdog", func() bool {
		return len(mentioning(t, home)) == 0
	})
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 20*time.Millisecond, what)
}
