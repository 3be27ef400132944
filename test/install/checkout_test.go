package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// checkout is a copy of what users have of the repository, in which what the
// kustomizations refer to on the network is on disk: the same files, out of the Go
// modules of the same repositories.
type checkout struct {
	*testing.T
	dir string
}

// The forms in which the kustomizations refer to other repositories: a directory
// of kwok, and a file of Karpenter.
var (
	remoteDirectory = regexp.MustCompile(`"?https://github\.com/kubernetes-sigs/kwok/(kustomize/[^?\s]+)\?ref=(v[0-9.]+)"?`)
	remoteFile      = regexp.MustCompile(`https://raw\.githubusercontent\.com/kubernetes-sigs/karpenter/(v[0-9.]+)/(\S+)`)
)

// newCheckout makes one in dir.
func newCheckout(t *testing.T, dir string) *checkout {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	c := &checkout{T: t, dir: dir}
	for _, tree := range []string{"kustomize", "stages"} {
		require.NoError(t, os.CopyFS(c.path(tree), os.DirFS(filepath.Join(sidecar.Root(), tree))))
	}
	kustomizations, err := filepath.Glob(c.path("kustomize", "*", "*.yaml"))
	require.NoError(t, err)
	deeper, err := filepath.Glob(c.path("kustomize", "*", "*", "kustomization.yaml"))
	require.NoError(t, err)
	for _, file := range append(kustomizations, deeper...) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte(c.local(string(content), filepath.Dir(file))), 0o600))
	}
	return c
}

func (c *checkout) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// local has a text that is read in a directory refer to files on disk.
func (c *checkout) local(text, directory string) string {
	c.Helper()
	text = remoteDirectory.ReplaceAllStringFunc(text, func(found string) string {
		match := remoteDirectory.FindStringSubmatch(found)
		copied := c.path("remote", "kwok@"+match[2])
		if _, err := os.Stat(copied); err != nil {
			tree := filepath.Join(moduleDir(c.T, "sigs.k8s.io/kwok", match[2]), "kustomize")
			require.NoError(c, os.CopyFS(filepath.Join(copied, "kustomize"), os.DirFS(tree)))
		}
		relative, err := filepath.Rel(directory, filepath.Join(copied, match[1]))
		require.NoError(c, err)
		return relative
	})
	return remoteFile.ReplaceAllStringFunc(text, func(found string) string {
		match := remoteFile.FindStringSubmatch(found)
		content, err := os.ReadFile(filepath.Join(moduleDir(c.T, "sigs.k8s.io/karpenter", match[1]), match[2]))
		require.NoError(c, err)
		name := filepath.Base(match[2])
		require.NoError(c, os.WriteFile(filepath.Join(directory, name), content, 0o600))
		return name
	})
}

// moduleVersions are the modules of releases whose own cannot be had: kwok 0.6.0
// has a tag and no module. Its directory kustomize is that of 0.6.1.
var moduleVersions = map[string]string{"sigs.k8s.io/kwok@v0.6.0": "v0.6.1"}

var downloading sync.Mutex

// moduleDir is the directory of a module in the module cache, where it is put if
// it is not there yet.
func moduleDir(t *testing.T, path, version string) string {
	t.Helper()
	downloading.Lock()
	defer downloading.Unlock()
	if other := moduleVersions[path+"@"+version]; other != "" {
		version = other
	}
	module, err := gomod.Download(t.Context(), sidecar.Root(), path+"@"+version)
	require.NoError(t, err)
	return module.Dir
}

// image is that of kwok-dra.
var image = regexp.MustCompile(`kwok-dra/kwok-dra:\S+`)

// TestReferences has all files name one release of kwok, but for those of
// Karpenter, and one image of kwok-dra; and the tests know every reference to
// another repository.
func TestReferences(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, t.TempDir())
	kwoks, images := map[string]bool{}, map[string]bool{}
	root := os.DirFS(filepath.Join(sidecar.Root(), "kustomize"))
	require.NoError(t, fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".md" {
			return err
		}
		content, err := fs.ReadFile(root, path)
		require.NoError(t, err)
		for _, match := range remoteDirectory.FindAllStringSubmatch(string(content), -1) {
			kwoks[match[2]] = kwoks[match[2]] || !strings.HasPrefix(path, "karpenter/")
		}
		for _, name := range image.FindAllString(string(content), -1) {
			images[name] = true
		}
		if filepath.Base(path) == "kustomization.yaml" {
			copied, err := os.ReadFile(c.path("kustomize", path))
			require.NoError(t, err)
			require.NotContains(t, string(copied), "https://", "%s refers to something in a form that is not known here", path)
		}
		return nil
	}))
	require.Equal(t, map[string]bool{"v0.8.0": true, "v0.6.0": false}, kwoks)
	require.Len(t, images, 1)
}

// TestCopies has the copies of files be what they are copies of.
func TestCopies(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"node", "pod"} {
		original, err := os.ReadFile(filepath.Join(sidecar.Root(), "stages", of, "general", "kwok-dra-configuration.yaml"))
		require.NoError(t, err)
		copied, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "kwok-general", "configuration", of+"-general.yaml"))
		require.NoError(t, err)
		require.Equal(t, string(original), string(copied))
	}
}
