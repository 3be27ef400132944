package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestKarpenterModule: the suite and the Karpenter that it tests are of one version.
func TestKarpenterModule(t *testing.T) {
	t.Parallel()
	file := filepath.Join(sidecar.Root(), "test", "karpenter", "go.mod")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := modfile.ParseLax(file, content, nil)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(parsed.Require, func(r *modfile.Require) bool { return r.Mod == karpenterModule }))
}
