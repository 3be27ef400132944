package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/tools/release/snapshot"
	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
)

const testVersion = "v1.2.3-test"

// host is the platform of this machine, as the only one: the others would take
// minutes, and the ways of their files are the same.
func host(t *testing.T) []source.Platform {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the image is for Linux")
	}
	return []source.Platform{{OS: runtime.GOOS, Architecture: runtime.GOARCH}}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	clone := snapshot.Commit(t)
	require.NoError(t, makeRelease(t.Context(), clone, testVersion, host(t), io.Discard))
	archive := fmt.Sprintf("kwok-dra-%s-%s-%s.tar.gz", testVersion, runtime.GOOS, runtime.GOARCH)
	pluginArchive := fmt.Sprintf("kubectl-dra-%s-%s-%s.tar.gz", testVersion, runtime.GOOS, runtime.GOARCH)

	t.Run("has these files", func(t *testing.T) {
		t.Parallel()
		require.ElementsMatch(t, []string{archive, pluginArchive, krewFile, "kwok-dra-v1.2.3-test-image.tar", "kwok-dra-v1.2.3-test-sbom.cdx.json", notesFile, "SHA256SUMS", "install.yaml", "kwok-dra-1.2.3-test.tgz"},
			names(t, filepath.Join(clone, "dist")))
	})
	t.Run("says the digest of its image", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		require.NoError(t, exec.CommandContext(t.Context(), "tar", "--extract", "--directory", dir, "--file", filepath.Join(clone, "dist", "kwok-dra-v1.2.3-test-image.tar"), "index.json").Run())
		var top struct{ Manifests []struct{ Digest string } }
		require.NoError(t, json.Unmarshal([]byte(readFile(t, dir, "index.json")), &top))
		require.Len(t, top.Manifests, 1)
		first, _, _ := strings.Cut(readFile(t, clone, "dist", "install.yaml"), "\n")
		require.Equal(t, "# Its image is kwok-dra/kwok-dra:v1.2.3-test@"+top.Manifests[0].Digest+".", first)
	})
	t.Run("has the notes of its changelog", func(t *testing.T) {
		t.Parallel()
		want, err := releaseNotes(readFile(t, clone, "CHANGELOG.md"), testVersion)
		require.NoError(t, err)
		require.Equal(t, want, readFile(t, clone, "dist", notesFile))
	})
	t.Run("has checksums of all", func(t *testing.T) {
		t.Parallel()
		checkSums(t, filepath.Join(clone, "dist"))
	})
	t.Run("has programs that run", func(t *testing.T) {
		t.Parallel()
		dir := unpack(t, filepath.Join(clone, "dist", archive))
		require.ElementsMatch(t, []string{"LICENSE", "kwok-dra", "kwok-dractl", "kubectl-dra", "kubectl_complete-dra"}, names(t, dir))
		for _, program := range []string{"kwok-dra", "kwok-dractl", "kubectl-dra"} {
			output, err := exec.CommandContext(t.Context(), filepath.Join(dir, program), "--version").Output()
			require.NoError(t, err, program)
			require.Contains(t, string(output), testVersion, program)
		}
	})
	t.Run("has a plugin that krew installs", func(t *testing.T) {
		t.Parallel()
		checkPlugin(t, filepath.Join(clone, "dist"), pluginArchive)
	})
	t.Run("lists its modules", func(t *testing.T) {
		t.Parallel()
		checkSBOM(t, filepath.Join(clone, "dist", "kwok-dra-v1.2.3-test-sbom.cdx.json"))
	})
	t.Run("is the same from another clone", func(t *testing.T) {
		t.Parallel()
		other := snapshot.Clone(t, clone)
		require.NoError(t, makeRelease(t.Context(), other, testVersion, host(t), io.Discard))
		require.Equal(t, readFile(t, clone, "dist", "SHA256SUMS"), readFile(t, other, "dist", "SHA256SUMS"))
		checkSums(t, filepath.Join(other, "dist"))
	})
}

// checkPlugin checks what krew installs: the manifest, and an archive with the plugin by itself.
func checkPlugin(t *testing.T, dist, archive string) {
	t.Helper()
	checkKrewManifest(t, dist)
	dir := unpack(t, filepath.Join(dist, archive))
	require.ElementsMatch(t, []string{"LICENSE", "kubectl-dra"}, names(t, dir))
	info, err := os.Lstat(filepath.Join(dir, "kubectl-dra"))
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular(), "krew unpacks no links")
	require.LessOrEqual(t, info.Size(), int64(57_000_000))
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3+build", "v01.2.3", "v1.2.3-", "v1.2.3-a..b", "82bdaf2", "v1.2.3 "} {
		err := makeRelease(t.Context(), t.TempDir(), version, nil, io.Discard)
		require.EqualError(t, err, fmt.Sprintf("VERSION is %q: give a semantic version, as in: make release VERSION=v1.2.3", version))
	}
	for _, version := range []string{"v0.2.0", "v10.0.1-rc.1", "v1.2.3-alpha-1"} {
		require.ErrorContains(t, makeRelease(t.Context(), t.TempDir(), version, nil, io.Discard), "must be a git clone")
	}
}

// checkSums does what sha256sum -c does, and wants no file without a checksum.
func checkSums(t *testing.T, dist string) {
	t.Helper()
	sums := readFile(t, dist, "SHA256SUMS")
	require.Len(t, names(t, dist), strings.Count(sums, "\n")+1)
	for line := range strings.Lines(sums) {
		sum, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		require.True(t, found, line)
		require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(t, dist, name)))), sum, name)
	}
}

// checkSBOM wants what is linked into the programs, and no module of the tests.
func checkSBOM(t *testing.T, file string) {
	t.Helper()
	var document struct {
		SerialNumber string
		Metadata     struct{ Timestamp string }
		Components   []struct{ Name, Version, Purl string }
	}
	require.NoError(t, json.Unmarshal([]byte(readFile(t, file)), &document))
	require.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, document.SerialNumber)
	require.Equal(t, snapshot.Date, document.Metadata.Timestamp)
	versions := map[string]string{}
	for _, component := range document.Components {
		versions[component.Name] = component.Version
	}
	require.Equal(t, testVersion, versions["kwok-dra"])
	require.Equal(t, testVersion, versions["kwok-dractl"])
	require.Equal(t, strings.TrimPrefix(runtime.Version(), "go"), versions["stdlib"])
	require.Regexp(t, `^v0\.\d+\.\d+$`, versions["k8s.io/client-go"])
	require.NotContains(t, versions, "github.com/stretchr/testify")
}

// unpack unpacks a .tar.gz into a new directory.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	uncompressed, err := gzip.NewReader(strings.NewReader(readFile(t, archive)))
	require.NoError(t, err)
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		require.Equal(t, snapshot.Date, header.ModTime.UTC().Format("2006-01-02T15:04:05Z"), header.Name)
		path := filepath.Join(dir, filepath.Base(header.Name))
		if header.Typeflag == tar.TypeSymlink {
			require.NoError(t, os.Symlink(header.Linkname, path))
			continue
		}
		content, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, os.FileMode(header.Mode)))
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func readFile(t *testing.T, elements ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elements...))
	require.NoError(t, err)
	return string(content)
}
