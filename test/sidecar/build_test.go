package sidecar

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModuleDirIntoEmptyModuleCache is what happens on a fresh machine.
func TestModuleDirIntoEmptyModuleCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -modcacherw") // else the files cannot be removed
	dir, err := ModuleDir(t.Context(), "sigs.k8s.io/kwok")
	require.NoError(t, err)
	require.Contains(t, dir, cache)
	require.FileExists(t, filepath.Join(dir, "kustomize", "stage", "node", "fast", "node-initialize.yaml"))
}
