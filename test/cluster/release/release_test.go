package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var linux = Platform{OS: "linux", Arch: "amd64"}

// program is large enough to be sent in several parts.
var program = bytes.Repeat([]byte("0123456789abcdef"), 1<<14)

func sha(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// host serves files, which tests break in their own ways.
type host struct {
	*httptest.Server
	files map[string][]byte
	// ranges are the Range headers of the requests for files, without checksums.
	ranges []string
	// serve, if set, answers instead.
	serve func(w http.ResponseWriter, r *http.Request, content []byte)
}

func newHost(t *testing.T) *host {
	h := &host{files: map[string][]byte{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := h.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if !strings.Contains(strings.ToLower(r.URL.Path), "sha256") {
			h.ranges = append(h.ranges, r.Header.Get("Range"))
			if h.serve != nil {
				h.serve(w, r, content)
				return
			}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(h.Close)
	t.Setenv(kubernetesPrefixEnv, h.URL+"/kubernetes")
	t.Setenv(etcdPrefixEnv, h.URL+"/etcd/")
	t.Setenv(kwokPrefixEnv, h.URL+"/kwok")
	return h
}

// kubectl returns a program that the host has, with its checksum.
func (h *host) kubectl(t *testing.T) File {
	files, err := Kubernetes("v1.36.3", linux, "kubectl")
	require.NoError(t, err)
	h.files["/kubernetes/v1.36.3/bin/linux/amd64/kubectl"] = program
	h.files["/kubernetes/v1.36.3/bin/linux/amd64/kubectl.sha256"] = []byte(sha(program))
	return files[0]
}

func downloader(t *testing.T) Downloader {
	return Downloader{Partial: filepath.Join(t.TempDir(), "partial"), Backoff: func(int) time.Duration { return 0 }}
}

func requireProgram(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(program, content), "the program is what was released")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o111), info.Mode()&0o111)
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestDownload(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	var done, of int64
	d.Progress = func(_ File, d, o int64) { done, of = d, o }
	require.NoError(t, d.Download(t.Context(), h.kubectl(t), dir))
	requireProgram(t, filepath.Join(dir, "kubectl"))
	requireEmpty(t, d.Partial)
	require.Equal(t, []int64{int64(len(program)), int64(len(program))}, []int64{done, of})
}

func TestArchive(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := Etcd("v3.6.16", linux)[0]
	h.files["/etcd/v3.6.16/etcd-v3.6.16-linux-amd64.tar.gz"] = archive(t, "etcd-v3.6.16-linux-amd64/README.md", "etcd-v3.6.16-linux-amd64/etcd")
	sums := func() {
		content := h.files["/etcd/v3.6.16/etcd-v3.6.16-linux-amd64.tar.gz"]
		h.files["/etcd/v3.6.16/SHA256SUMS"] = []byte(sha(nil) + "  etcd-v3.6.16-darwin-amd64.zip\n" + sha(content) + "  etcd-v3.6.16-linux-amd64.tar.gz\n")
	}
	sums()
	require.NoError(t, d.Download(t.Context(), f, dir))
	requireProgram(t, filepath.Join(dir, "etcd"))

	h.files["/etcd/v3.6.16/etcd-v3.6.16-linux-amd64.tar.gz"] = archive(t, "other")
	sums()
	require.ErrorContains(t, d.Download(t.Context(), f, dir), "etcd-v3.6.16-linux-amd64/etcd is not in it")
}

func archive(t *testing.T, names ...string) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	tarred := tar.NewWriter(zipped)
	for _, name := range names {
		require.NoError(t, tarred.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(program))}))
		_, err := tarred.Write(program)
		require.NoError(t, err)
	}
	require.NoError(t, tarred.Close())
	require.NoError(t, zipped.Close())
	return out.Bytes()
}

func TestWrongChecksum(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := h.kubectl(t)
	h.files["/kubernetes/v1.36.3/bin/linux/amd64/kubectl.sha256"] = []byte(sha([]byte("another")))
	err := d.Download(t.Context(), f, dir)
	require.ErrorContains(t, err, "verify "+f.URL+": its SHA-256 is "+sha(program)+", but "+f.Sums+" says "+sha([]byte("another")))
	requireEmpty(t, dir)
	requireEmpty(t, d.Partial)

	h.kubectl(t)
	require.NoError(t, d.Download(t.Context(), f, dir), "nothing of the wrong file is left")
}

// cut answers as promised, but ends the connection after n bytes.
func cut(n int) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, r *http.Request, content []byte) {
		http.ServeContent(&cutWriter{ResponseWriter: w, left: n}, r, "", time.Time{}, bytes.NewReader(content))
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	panic(http.ErrAbortHandler)
}

func TestTruncatedFileIsContinued(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := h.kubectl(t)
	h.serve = cut(100_000)
	require.NoError(t, d.Download(t.Context(), f, dir))
	requireProgram(t, filepath.Join(dir, "kubectl"))
	require.Greater(t, len(h.ranges), 1)
	require.Empty(t, h.ranges[0])
	require.Regexp(t, `^bytes=[1-9]\d*-$`, h.ranges[1])
}

func TestTruncatedFileNeverComplete(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := h.kubectl(t)
	h.serve = cut(20_000)
	require.ErrorContains(t, d.Download(t.Context(), f, dir), "download "+f.URL+": unexpected EOF")
	require.Len(t, h.ranges, patient.attempts)
	requireEmpty(t, dir)

	// The file on the host is truncated itself: its length is right and its sum wrong.
	h.serve = nil
	h.files["/kubernetes/v1.36.3/bin/linux/amd64/kubectl"] = program[:len(program)/2]
	require.ErrorContains(t, d.Download(t.Context(), f, dir), "verify "+f.URL)
	requireEmpty(t, dir)
}

func TestInterruptedDownloadIsContinued(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := h.kubectl(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.Progress = func(File, int64, int64) { cancel() }
	require.ErrorIs(t, d.Download(ctx, f, dir), context.Canceled)
	requireEmpty(t, dir)

	d.Progress = nil
	require.NoError(t, d.Download(t.Context(), f, dir))
	requireProgram(t, filepath.Join(dir, "kubectl"))
	require.Regexp(t, `^bytes=[1-9]\d*-$`, h.ranges[len(h.ranges)-1])
}

func TestHostWithoutRanges(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := h.kubectl(t)
	require.NoError(t, os.MkdirAll(d.Partial, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(d.Partial, sha(program)), program[:10], 0o644))
	h.serve = func(w http.ResponseWriter, _ *http.Request, content []byte) { _, _ = w.Write(content) }
	require.NoError(t, d.Download(t.Context(), f, dir))
	requireProgram(t, filepath.Join(dir, "kubectl"))
}

func TestCompletePartialFile(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := h.kubectl(t)
	require.NoError(t, os.MkdirAll(d.Partial, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(d.Partial, sha(program)), program, 0o644))
	require.NoError(t, d.Download(t.Context(), f, dir))
	requireProgram(t, filepath.Join(dir, "kubectl"))
}

func TestNotThere(t *testing.T) {
	h, d, dir := newHost(t), downloader(t), t.TempDir()
	f := h.kubectl(t)
	delete(h.files, "/kubernetes/v1.36.3/bin/linux/amd64/kubectl")
	require.ErrorContains(t, d.Download(t.Context(), f, dir), "download "+f.URL+": the server refuses: 404 Not Found")

	h.files["/kubernetes/v1.36.3/bin/linux/amd64/kubectl.sha256"] = []byte("<html>sign in</html>")
	require.ErrorContains(t, d.Download(t.Context(), f, dir), "find the SHA-256 of kubectl in "+f.Sums+": it is not there")

	delete(h.files, "/kubernetes/v1.36.3/bin/linux/amd64/kubectl.sha256")
	require.ErrorContains(t, d.Download(t.Context(), f, dir), "download checksums "+f.Sums)
}

func TestFiles(t *testing.T) {
	for _, env := range []string{kubernetesPrefixEnv, etcdPrefixEnv, kwokPrefixEnv} {
		t.Setenv(env, "")
	}
	files, err := Kubernetes("v1.36.3", Platform{"linux", "arm64"}, "kube-apiserver", "kubectl")
	require.NoError(t, err)
	require.Equal(t, "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kube-apiserver", files[0].URL)
	require.Equal(t, "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubectl.sha256", files[1].Sums)
	_, err = Kubernetes("v1.36.3", Platform{"darwin", "arm64"}, "kubectl")
	require.EqualError(t, err, "download Kubernetes v1.36.3 for darwin/arm64: its servers are released for linux only")

	require.Equal(t, []File{{
		Program: "kwok",
		URL:     "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64",
		Sums:    "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0",
	}}, Kwok("v0.8.0", linux, "kwok"))
}

func TestSumOfGitHub(t *testing.T) {
	f := File{URL: "https://github.com/a/b/releases/download/v1/kwok-linux-amd64", Sums: "https://api.github.com/x"}
	sum, err := f.findChecksum([]byte(`{"assets": [{"name": "kwok-linux-arm64", "digest": "sha256:` + sha(nil) + `"}, {"name": "kwok-linux-amd64", "digest": "sha256:` + sha(program) + `"}]}`))
	require.NoError(t, err)
	require.Equal(t, sha(program), sum)
	for _, published := range []string{`{"assets": [{"name": "kwok-linux-amd64", "digest": null}]}`, `{"assets": 1}`, `{"message": "rate limit"}`} {
		_, err = f.findChecksum([]byte(published))
		require.ErrorContains(t, err, "find the SHA-256 of kwok-linux-amd64 in https://api.github.com/x: it is not there")
	}
}
