package build

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/release"
)

// releaseHost has a kwok of every version, each program a script, and SHA256SUMS.
func releaseHost(t *testing.T, sumsOf func(script string) string) {
	script := func(name string) string { return "#!/bin/sh\necho " + name + "\n" }
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "SHA256SUMS" {
			fmt.Fprint(w, script(path.Base(r.URL.Path)))
			return
		}
		for _, program := range []string{"kwok-linux-amd64", "kwokctl-linux-amd64"} {
			fmt.Fprintf(w, "%x  %s\n", sha256.Sum256([]byte(sumsOf(script(program)))), program)
		}
	}))
	t.Cleanup(host.Close)
	t.Setenv("KWOK_BINARY_PREFIX", host.URL)
}

func same(script string) string { return script }

var linux = release.Platform{OS: "linux", Arch: "amd64"}

// releasedKwok is the unit of a kwok that is downloaded.
func releasedKwok(t *testing.T, version string) unit {
	all, err := released(Versions{Kubernetes: "v1.36.3", Kwok: version}, linux)
	require.NoError(t, err)
	return all[len(all)-1]
}

func TestDownloadInsteadOfBuild(t *testing.T) {
	releaseHost(t, same)
	cache := t.TempDir()
	u := releasedKwok(t, "v0.8.0")
	var output bytes.Buffer
	require.NoError(t, buildMissing(t.Context(), cache, []unit{u}, &output))
	require.Contains(t, output.String(), "Downloading release binaries of the cluster's programs into "+cache)
	require.Contains(t, output.String(), "[1/1] kwok v0.8.0-release (kwok, kwokctl): done in ")
	for _, program := range []string{"kwok", "kwokctl"} {
		script, err := os.ReadFile(filepath.Join(cache, "kwok-v0.8.0-release", program))
		require.NoError(t, err)
		require.Equal(t, "#!/bin/sh\necho "+program+"-linux-amd64\n", string(script))
	}
	require.Empty(t, missing(cache, []unit{u}))
}

func TestDownloadOlderKwokWithItsStages(t *testing.T) {
	releaseHost(t, same)
	cache := t.TempDir()
	u := releasedKwok(t, "v0.7.0")
	require.NoError(t, buildMissing(t.Context(), cache, []unit{u}, &bytes.Buffer{}))
	stages, err := os.ReadFile(filepath.Join(cache, "kwok-v0.7.0-release", stagesFile))
	require.NoError(t, err)
	require.Equal(t, 5, strings.Count(string(stages), "kind: Stage"))
}

func TestDownloadOfAnotherFileFails(t *testing.T) {
	releaseHost(t, func(script string) string { return script + "tampered" })
	cache := t.TempDir()
	u := releasedKwok(t, "v0.8.0")
	err := buildMissing(t.Context(), cache, []unit{u}, &bytes.Buffer{})
	require.ErrorContains(t, err, "download kwok v0.8.0-release (kwok, kwokctl): verify http://")
	require.ErrorContains(t, err, "(without RELEASE_BINARIES it is built)")
	require.Equal(t, []unit{u}, missing(cache, []unit{u}))
}

func TestReleased(t *testing.T) {
	t.Parallel()
	all, err := released(Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}, linux)
	require.NoError(t, err)
	require.Equal(t, "kubernetes-v1.36.3-release", all[0].name)
	for _, u := range all {
		var programs []string
		for _, f := range u.release {
			programs = append(programs, f.Program)
		}
		require.Equal(t, u.programs(), programs)
	}
	_, err = released(Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}, release.Platform{OS: "darwin", Arch: "arm64"})
	require.ErrorContains(t, err, "its servers are released for linux only")
}

func TestWantsRelease(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "1": true, "true": true} {
		t.Setenv(ReleaseEnv, value)
		require.Equal(t, want, wantsRelease(), "%q", value)
	}
}

func TestAnnouncement(t *testing.T) {
	t.Parallel()
	all := units(Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"})
	require.Equal(t, "Building the cluster's programs into /c, once. With 2 cores this takes 5 to 10 minutes; RELEASE_BINARIES=1 downloads them instead.",
		announcement("/c", all, 2))
	require.Contains(t, announcement("/c", all[1:2], 16), "With 16 cores this takes 1 to 2 minutes")
}
