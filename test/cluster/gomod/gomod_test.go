package gomod_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
)

const self = "github.com/kwok-dra/kwok-dra/test/cluster"

// emptyCache has the go command of the test begin with an empty module cache, as
// on a fresh machine.
func emptyCache(t *testing.T) string {
	t.Helper()
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	// Else the files cannot be removed.
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -modcacherw")
	return cache
}

func TestRoot(t *testing.T) {
	dir, err := gomod.Root(self)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "gomod", "gomod.go"))

	_, err = gomod.Root("example.org/none")
	require.ErrorContains(t, err, "find module example.org/none: no go.mod of it in ")
}

func TestDownloadIntoEmptyCache(t *testing.T) {
	cache := emptyCache(t)
	root, err := gomod.Root(self)
	require.NoError(t, err)
	for _, query := range []string{"golang.org/x/mod", "golang.org/x/mod@v0.41.0"} {
		m, err := gomod.Download(t.Context(), root, query)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(m.Dir, "modfile", "rule.go"))
		require.FileExists(t, m.GoMod)
		require.Contains(t, m.Dir, cache)
	}
}

func TestDownloadFailures(t *testing.T) {
	emptyCache(t)
	root, err := gomod.Root(self)
	require.NoError(t, err)
	t.Setenv("GOPROXY", "off")
	_, err = gomod.Download(t.Context(), root, "golang.org/x/mod")
	require.ErrorContains(t, err, "download module golang.org/x/mod: ")
	require.ErrorContains(t, err, "GOPROXY=off")

	_, err = gomod.Download(t.Context(), root, "example.org/not-required")
	require.ErrorContains(t, err, "download module example.org/not-required: ")

	for name, answer := range map[string]string{"empty object": "{}", "nothing": "", "no directory": `{"GoMod": "go.mod"}`} {
		t.Run(name, func(t *testing.T) {
			_, err := gomod.Read(exec.Command("echo", answer), "example.org/a")
			require.ErrorContains(t, err, "download module example.org/a: ")
		})
	}
}
