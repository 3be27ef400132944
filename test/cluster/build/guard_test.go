package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ownerEnv makes the test program one that builds something in the directory
// that the variable names.
const ownerEnv = "KWOK_DRA_TEST_BUILD"

func TestMain(m *testing.M) {
	if cache := os.Getenv(ownerEnv); cache != "" {
		if err := buildMissing(context.Background(), cache, []unit{small}, os.Stderr); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestNothingCompilesForNobody(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	owner := exec.Command(os.Args[0])
	// Nothing is compiled yet in a cache of its own, so it takes a while.
	owner.Env = append(os.Environ(), ownerEnv+"="+cache, "GOCACHE="+filepath.Join(cache, "gocache"))
	require.NoError(t, owner.Start())
	t.Cleanup(func() { _ = owner.Process.Kill() })

	var group string
	eventually(t, "the build runs", func() bool {
		for _, line := range processes(t) {
			if strings.Contains(line, " build -v ") && strings.Contains(line, cache) {
				group = strings.Fields(line)[0]
			}
		}
		return group != ""
	})
	require.NoError(t, owner.Process.Signal(syscall.SIGKILL))
	require.Error(t, owner.Wait())
	eventually(t, "nothing of the group runs", func() bool {
		for _, line := range processes(t) {
			if fields := strings.Fields(line); fields[0] == group && fields[1][0] != 'Z' {
				return false
			}
		}
		return true
	})
}

// processes are lines with process group, state and command.
func processes(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "pgid=,stat=,args=").Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 50*time.Millisecond, what)
}
