package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

// requireLoopback fails when a process of the cluster listens on an address
// that other machines can reach.
func requireLoopback(t *testing.T, c *Cluster) {
	t.Helper()
	processes, err := process.In(c.home)
	require.NoError(t, err)
	listening := listeners(t)
	count := 0
	for _, p := range processes {
		fds, err := filepath.Glob("/proc/" + strconv.Itoa(p.PID) + "/fd/*")
		require.NoError(t, err)
		for _, fd := range fds {
			target, _ := os.Readlink(fd)
			inode, isSocket := strings.CutPrefix(strings.TrimSuffix(target, "]"), "socket:[")
			address, listens := listening[inode]
			if !isSocket || !listens {
				continue
			}
			count++
			// 127.0.0.1 as the kernel writes it.
			require.True(t, strings.HasPrefix(address, "0100007F:"), "%s listens on %s", p.Program, address)
		}
	}
	require.Equal(t, portsUsed, count)
}

// mentioning returns the command lines of all processes that name path. It
// looks on its own, so that it finds what the code under test may overlook.
func mentioning(t *testing.T, path string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), path) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// listeners maps the inodes of all listening TCP sockets to their addresses.
func listeners(t *testing.T) map[string]string {
	t.Helper()
	const listen = "0A"
	found := map[string]string{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // a kernel without IPv6
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(table)) {
			if fields := strings.Fields(line); len(fields) > 9 && fields[3] == listen {
				found[fields[9]] = fields[1]
			}
		}
	}
	return found
}
