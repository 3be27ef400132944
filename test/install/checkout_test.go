package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/release/overlay"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// checkout is a copy of what users have of the repository, in which what the
// kustomizations refer to on the network is on disk.
type checkout struct {
	*testing.T
	copied *overlay.Checkout
	dir    string
}

// newCheckout makes one in dir.
func newCheckout(t *testing.T, dir string) *checkout {
	t.Helper()
	copied, err := overlay.Copy(t.Context(), sidecar.Root(), dir, "*")
	require.NoError(t, err)
	return &checkout{T: t, copied: copied, dir: copied.Dir}
}

func (c *checkout) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// local has a text that is read in a directory refer to files on disk.
func (c *checkout) local(text, directory string) string {
	c.Helper()
	text, err := c.copied.Local(c.Context(), text, directory)
	require.NoError(c, err)
	return text
}

// moduleDir is the directory of a module in the module cache, where it is put if
// it is not there yet.
func moduleDir(t *testing.T, path, version string) string {
	t.Helper()
	if path == "sigs.k8s.io/kwok" {
		version = overlay.KwokModule(version)
	}
	module, err := gomod.Download(t.Context(), sidecar.Root(), path+"@"+version)
	require.NoError(t, err)
	return module.Dir
}

// remoteDirectory is how the kustomizations refer to a directory of kwok.
var remoteDirectory = regexp.MustCompile(`https://github\.com/kubernetes-sigs/kwok/kustomize/[^?\s]+\?ref=(v[0-9.]+)`)

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
			kwoks[match[1]] = kwoks[match[1]] || !strings.HasPrefix(path, "karpenter/")
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
