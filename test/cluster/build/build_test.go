package build

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
)

// small is a program that builds in about a second, from a module that this
// one needs anyway.
var small = unit{
	name:     "small-v0.42.0",
	source:   module.Version{Path: "golang.org/x/mod", Version: "v0.42.0"},
	packages: []string{"golang.org/x/mod/gosumcheck"},
}

func TestEnsure(t *testing.T) {
	programs, err := Ensure(t.Context(), Options{})
	require.NoError(t, err)
	want := map[string]string{
		"etcd":                    "etcd Version: " + strings.TrimPrefix(etcdVersion, "v"),
		"kube-apiserver":          "Kubernetes " + programs.Versions.Kubernetes,
		"kube-controller-manager": "Kubernetes " + programs.Versions.Kubernetes,
		"kube-scheduler":          "Kubernetes " + programs.Versions.Kubernetes,
		"kwok":                    "kwok version " + programs.Versions.Kwok,
		"kwokctl":                 "kwokctl version " + kwokctlVersion,
	}
	for name, version := range want {
		out, err := exec.Command(programs.Path(name), "--version").Output()
		require.NoError(t, err)
		require.Contains(t, string(out), version)
	}
	out, err := exec.Command(programs.Path("kubectl"), "version", "--client").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "Client Version: "+programs.Versions.Kubernetes)

	t.Run("again", func(t *testing.T) {
		// Without a go command nothing can be built: it has to be found as it is.
		t.Setenv("PATH", "")
		var output bytes.Buffer
		again, err := Ensure(t.Context(), Options{Output: &output})
		require.NoError(t, err)
		require.Equal(t, programs, again)
		require.Empty(t, output.String())
	})
}

func TestBuild(t *testing.T) {
	cache := t.TempDir()
	// What a build interrupted by SIGKILL leaves.
	require.NoError(t, os.MkdirAll(filepath.Join(cache, scratchPrefix+"123", "bin"), 0o755))
	// What somebody may have set for a module of their own.
	t.Setenv("GOFLAGS", "-mod=vendor -tags=nothing")
	t.Setenv("GOWORK", filepath.Join(cache, "go.work"))
	t.Setenv("GOBIN", filepath.Join(cache, "gobin"))
	t.Setenv("CGO_ENABLED", "1")

	var output bytes.Buffer
	require.NoError(t, buildMissing(t.Context(), cache, []unit{small}, &output))
	require.Contains(t, output.String(), "[1/1] small v0.42.0 (gosumcheck): done in ")
	require.NoError(t, exec.Command(filepath.Join(cache, small.name, "gosumcheck"), "/dev/null").Run())
	requireEntries(t, cache, "build.lock", small.name)

	// Half of it is lost: it is made again.
	require.NoError(t, os.Remove(filepath.Join(cache, small.name, "gosumcheck")))
	require.Equal(t, []unit{small}, missingUnits(cache, []unit{small}))
	require.NoError(t, buildMissing(t.Context(), cache, []unit{small}, &output))
	require.Empty(t, missingUnits(cache, []unit{small}))
}

func TestBuildAtTheSameTime(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	outputs := make([]bytes.Buffer, 3)
	var all sync.WaitGroup
	for i := range outputs {
		all.Go(func() {
			if err := buildMissing(t.Context(), cache, []unit{small}, &outputs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	built := 0
	for i := range outputs {
		built += strings.Count(outputs[i].String(), "done in")
	}
	require.Equal(t, 1, built, "the others find the work done")
}

func TestBuildFails(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	broken := small
	broken.packages = []string{"golang.org/x/mod/nothing"}
	var output bytes.Buffer
	err := buildMissing(t.Context(), cache, []unit{broken}, &output)
	require.ErrorContains(t, err, "build small v0.42.0 (nothing): run the compiler: exit status 1, its last lines:")
	require.ErrorContains(t, err, "does not contain package golang.org/x/mod/nothing")
	require.Contains(t, output.String(), "failed after")
	requireEntries(t, cache, "build.lock")

	broken.source.Version = "v0.0.1-nothing"
	err = buildMissing(t.Context(), cache, []unit{broken}, &output)
	require.ErrorContains(t, err, "download module golang.org/x/mod@v0.0.1-nothing")
}

func TestBuildInterrupted(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The first progress comes when the build has begun.
	err := buildMissing(ctx, cache, []unit{small}, writerFunc(func(text []byte) {
		if bytes.HasPrefix(text, []byte("[1/1]")) {
			cancel()
		}
	}))
	require.ErrorIs(t, err, context.Canceled)
	requireEntries(t, cache, "build.lock")
}

func TestCache(t *testing.T) {
	t.Setenv(CacheEnv, "relative")
	dir, err := Cache()
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(dir))

	t.Setenv(CacheEnv, "")
	t.Setenv("XDG_CACHE_HOME", "/xdg")
	t.Setenv("HOME", "/home/someone")
	dir, err = Cache()
	require.NoError(t, err)
	require.Equal(t, "kwok-dra", filepath.Base(dir))
	require.NotEqual(t, "/kwok-dra", dir)
}

type writerFunc func([]byte)

func (f writerFunc) Write(text []byte) (int, error) { f(text); return len(text), nil }

func requireEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	require.ElementsMatch(t, want, got)
}
