// Package snapshot makes git clones for tests, of what the work tree has right
// now, whether it is committed or not.
package snapshot

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// Date is that of the commit. It is long ago, so that no clock could be taken for
// it.
const Date = "2001-02-03T04:05:06Z"

// Commit makes a repository with one commit and returns its directory.
func Commit(t *testing.T) string {
	t.Helper()
	from, to := sidecar.Root(), filepath.Join(t.TempDir(), "clone")
	list := Git(t, from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimRight(list, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) { // git still knows a file that is deleted
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), content, 0o600))
	}
	Git(t, to, "init", "--quiet")
	Git(t, to, "add", "--all")
	Git(t, to, "commit", "--quiet", "--message", "Snapshot")
	return to
}

// Clone clones a repository and returns the directory of the clone, in which there
// is a file that git does not know.
func Clone(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "elsewhere")
	Git(t, from, "clone", "--quiet", from, to)
	require.NoError(t, os.WriteFile(filepath.Join(to, "notes.txt"), nil, 0o600))
	return to
}

// Git runs git without the settings of the user.
func Git(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_AUTHOR_DATE="+Date,
		"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com", "GIT_COMMITTER_DATE="+Date)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	require.NoError(t, err, "git %v: %s", arguments, &stderr)
	return strings.TrimSpace(string(output))
}
