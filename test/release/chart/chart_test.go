package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/release/overlay"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

func TestX(t *testing.T) {
	c, err := overlay.Copy(t.Context(), sidecar.Root(), t.TempDir(), "kwok", "kwok-general")
	require.NoError(t, err)
	files, err := Files(c, "v0.2.0")
	require.NoError(t, err)
	for _, f := range files {
		p := filepath.Join("/tmp/release/x", f.Name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, f.Content, 0o644)
	}
	m, err := c.Manifest("v0.2.0")
	require.NoError(t, err)
	os.WriteFile("/tmp/release/x/install.yaml", m, 0o644)
}
