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
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
)

// checkout is a copy of what users have of the repository, in which what the
// kustomizations refer to on the network is on disk.
type checkout struct {
	*testing.T
	*overlay.Checkout
}

// newCheckout makes one in dir.
func newCheckout(t *testing.T, dir string) *checkout {
	t.Helper()
	copied, err := overlay.Copy(t.Context(), sidecar.Root(), dir, "*")
	require.NoError(t, err)
	return &checkout{T: t, Checkout: copied}
}

func (c *checkout) path(elem ...string) string {
	return filepath.Join(append([]string{c.Dir}, elem...)...)
}

// local has commands that are run in the checkout refer to files on disk.
func (c *checkout) local(commands string) string {
	c.Helper()
	local, err := c.Local(c.Context(), commands, c.Dir)
	require.NoError(c, err)
	return local
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

var (
	// release is that of kwok in a reference.
	release = regexp.MustCompile(`github\.com/kubernetes-sigs/kwok/[^?\s]+\?ref=(v[0-9.]+)`)
	// image is that of kwok-dra, or the version of which one is made.
	image = regexp.MustCompile(`(?:kwok-dra/kwok-dra:|make image VERSION=)(\S+)`)
)

// TestReferences has all files name one release of kwok, but for those of
// Karpenter, and one image of kwok-dra; and the tests know every reference to
// another repository.
func TestReferences(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, t.TempDir())
	kwoks, images := map[string]bool{}, map[string]bool{}
	refers := func(path string) {
		content, err := os.ReadFile(filepath.Join(sidecar.Root(), path))
		require.NoError(t, err)
		for _, match := range release.FindAllStringSubmatch(string(content), -1) {
			kwoks[match[1]] = kwoks[match[1]] || !strings.HasPrefix(path, "kustomize/karpenter/")
		}
		for _, match := range image.FindAllStringSubmatch(string(content), -1) {
			images[match[1]] = true
		}
	}
	refers(guidePath)
	require.NoError(t, fs.WalkDir(os.DirFS(sidecar.Root()), "kustomize", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		refers(path)
		if filepath.Base(path) == "kustomization.yaml" {
			copied, err := os.ReadFile(c.path(path))
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
