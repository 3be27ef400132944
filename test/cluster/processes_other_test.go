//go:build !linux

package cluster

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireLoopback is for Linux only: there is no common way to ask.
func requireLoopback(*testing.T, *Cluster) {}

// mentioning returns the command lines of all processes that name path.
func mentioning(t *testing.T, path string) (found []string) {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "args=").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, path) {
			found = append(found, line)
		}
	}
	return found
}
