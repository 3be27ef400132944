package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// failEnv makes TestFails fail.
const failEnv = "KWOK_DRA_TEST_FAIL"

func TestFails(t *testing.T) {
	if os.Getenv(failEnv) == "" {
		t.Skip("is run by TestLogsAndTimesAreKept")
	}
	c := ForTest(t, Options{})
	t.Log("home", c.home)
	t.Fatal("as asked for")
}

func TestLogsAndTimesAreKept(t *testing.T) {
	t.Parallel()
	logs := filepath.Join(t.TempDir(), "logs")
	times := filepath.Join(t.TempDir(), "times")
	cmd := exec.Command(os.Args[0], "-test.run=^TestFails$")
	cmd.Env = append(os.Environ(), failEnv+"=1", LogsEnv+"="+logs, TimesEnv+"="+times)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	dirs, err := filepath.Glob(filepath.Join(logs, "logs-TestFails-*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	require.Contains(t, string(out), "are kept in "+dirs[0])
	for _, log := range []string{"kwok-controller.log", "objects.log", "events.log"} {
		require.Contains(t, string(out), "The last lines of "+log+":\n")
	}
	for _, name := range []string{"etcd.log", "kube-apiserver.log", "kube-controller-manager.log", "kube-scheduler.log", "kwok-controller.log", "kwokctl.log", "objects.log", "events.log"} {
		require.FileExists(t, filepath.Join(dirs[0], name))
	}
	noted, err := os.ReadFile(times)
	require.NoError(t, err)
	require.Regexp(t, `^cluster (\d+m)?\d+(\.\d+)?s\n$`, string(noted))
}
