package build

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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
		for _, program := range []string{"kwok-linux-amd64", "kwokctl-linux-amd64", "gosumcheck-linux-amd64"} {
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
	all, err := unitsOf(Versions{Kubernetes: "v1.36.3", Kwok: version}, "1", linux)
	require.NoError(t, err)
	return all[len(all)-1]
}

func TestDownloadInsteadOfBuild(t *testing.T) {
	releaseHost(t, same)
	cache := t.TempDir()
	u := releasedKwok(t, "v0.8.0")
	var output bytes.Buffer
	require.NoError(t, buildMissing(t.Context(), cache, []unit{u}, &output))
	require.Contains(t, output.String(), "Downloading kwok v0.8.0 into "+cache+", once: RELEASE_BINARIES=1.\n")
	require.Contains(t, output.String(), "[1/1] kwok v0.8.0 (kwok, kwokctl): done in ")
	for _, program := range []string{"kwok", "kwokctl"} {
		script, err := os.ReadFile(filepath.Join(cache, "kwok-v0.8.0-release", program))
		require.NoError(t, err)
		require.Equal(t, "#!/bin/sh\necho "+program+"-linux-amd64\n", string(script))
	}
	require.Empty(t, missingUnits(cache, []unit{u}))
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
	require.ErrorContains(t, err, "download kwok v0.8.0 (kwok, kwokctl): verify http://")
	require.ErrorContains(t, err, "(RELEASE_BINARIES=0 compiles it instead)")
	require.Equal(t, []unit{u}, missingUnits(cache, []unit{u}))
}

func TestReleased(t *testing.T) {
	t.Parallel()
	all, err := releasedUnits(Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}, linux)
	require.NoError(t, err)
	require.Equal(t, "kubernetes-v1.36.3-release", all[0].name)
	for _, u := range all {
		var programs []string
		for _, f := range u.release {
			programs = append(programs, f.Program)
		}
		require.Equal(t, u.programNames(), programs)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	versions := Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}
	darwin := release.Platform{OS: "darwin", Arch: "arm64"}
	for wanted, want := range map[string]struct{ releases, inReserve bool }{
		"":      {releases: true, inReserve: true},
		"0":     {},
		"false": {},
		"1":     {releases: true},
		"true":  {releases: true},
	} {
		all, err := unitsOf(versions, wanted, linux)
		require.NoError(t, err)
		for _, u := range all {
			require.Equal(t, want.releases, u.release != nil, "%q", wanted)
			require.Equal(t, want.inReserve, u.compiled != nil, "%q", wanted)
		}
	}
	all, err := unitsOf(versions, "", darwin)
	require.NoError(t, err)
	require.Nil(t, all[0].release)
	require.Contains(t, announceBuild("/c", all, 2), "its servers are released for linux only. With 2 cores this takes")
	_, err = unitsOf(versions, "1", darwin)
	require.ErrorContains(t, err, "its servers are released for linux only: RELEASE_BINARIES=0 compiles them")
}

// either is the small program, which can be downloaded and compiled.
func either() unit {
	u := small
	u.name += releaseSuffix
	u.compiled = &small
	u.release = release.Kwok("v0.8.0", linux, "gosumcheck")
	return u
}

func TestDownloadWhereTheServerAnswers(t *testing.T) {
	releaseHost(t, same)
	cache := t.TempDir()
	require.NoError(t, buildMissing(t.Context(), cache, []unit{either()}, &bytes.Buffer{}))
	require.Equal(t, either().name, either().cachedUnit(cache).name)
	require.Empty(t, missingUnits(cache, []unit{either()}))
	require.Equal(t, []unit{small}, missingUnits(cache, []unit{small}), "the other kind is not there")
}

func TestCompileWhereNoServerAnswers(t *testing.T) {
	t.Setenv("KWOK_BINARY_PREFIX", "http://127.0.0.1:1/kwok")
	cache := t.TempDir()
	var output bytes.Buffer
	require.NoError(t, buildMissing(t.Context(), cache, []unit{either()}, &output))
	require.Contains(t, output.String(), "Compiling small v0.42.0 into "+cache+", once: 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused. With ")
	requireCompiled(t, cache)
}

// TestCompileWhatCannotBeDownloaded: the servers answer, and then it goes wrong.
func TestCompileWhatCannotBeDownloaded(t *testing.T) {
	t.Run("another file", func(t *testing.T) {
		releaseHost(t, func(script string) string { return script + "tampered" })
		cache := t.TempDir()
		var output bytes.Buffer
		require.NoError(t, buildMissing(t.Context(), cache, []unit{either()}, &output))
		require.Contains(t, output.String(), "[1/1] Compiling it instead: verify http://")
		requireCompiled(t, cache)
	})
	t.Run("no file", func(t *testing.T) {
		content := []byte("#!/bin/sh\n")
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case path.Base(r.URL.Path) == "SHA256SUMS":
				fmt.Fprintf(w, "%x  gosumcheck-linux-amd64\n", sha256.Sum256(content))
			case r.Header.Get("Range") == "": // all of it
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(host.Close)
		t.Setenv("KWOK_BINARY_PREFIX", host.URL)
		cache := t.TempDir()
		var output bytes.Buffer
		require.NoError(t, buildMissing(t.Context(), cache, []unit{either()}, &output))
		require.Regexp(t, `\[1/1\] Compiling it instead: download http://.*: the server refuses: 404 Not Found\. With`, output.String())
		requireCompiled(t, cache)
	})
}

func requireCompiled(t *testing.T, cache string) {
	t.Helper()
	require.Equal(t, small.name, either().cachedUnit(cache).name)
	require.Empty(t, missingUnits(cache, []unit{either()}))
	require.NoError(t, exec.Command(filepath.Join(cache, small.name, "gosumcheck"), "/dev/null").Run())
}

// TestOneKindIsEnough: what is compiled is not asked for on the network.
func TestOneKindIsEnough(t *testing.T) {
	cache := t.TempDir()
	require.NoError(t, buildMissing(t.Context(), cache, []unit{small}, &bytes.Buffer{}))
	host := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the network is asked") }))
	t.Cleanup(host.Close)
	t.Setenv("KWOK_BINARY_PREFIX", host.URL)
	require.NoError(t, buildMissing(t.Context(), cache, []unit{either()}, &bytes.Buffer{}))
	requireCompiled(t, cache)
}

func TestAnnouncement(t *testing.T) {
	t.Parallel()
	all, err := unitsOf(Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}, "", linux)
	require.NoError(t, err)
	require.Equal(t, "Downloading kubernetes v1.36.3, etcd v3.6.16, kwok v0.8.0 into /c, once: their servers answer. RELEASE_BINARIES=0 compiles them instead.",
		announceBuild("/c", all, 2))
	all[2] = *all[2].compiled
	all[2].reason = "api.github.com: no answer within 3s"
	require.Equal(t, "Downloading kubernetes v1.36.3, etcd v3.6.16, compiling kwok v0.8.0 into /c, once: api.github.com: no answer within 3s. With 2 cores this takes 1 to 2 minutes.",
		announceBuild("/c", all, 2))
	all, err = unitsOf(Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}, "0", linux)
	require.NoError(t, err)
	require.Equal(t, "Compiling kubernetes v1.36.3, etcd v3.6.16, kwok v0.8.0 into /c, once: RELEASE_BINARIES=0. With 2 cores this takes 5 to 10 minutes.",
		announceBuild("/c", all, 2))
	require.Contains(t, announceBuild("/c", all[1:2], 16), "With 16 cores this takes 1 to 2 minutes")
}
