package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
)

// krewManifest is what is checked of a manifest here. krew's own program checks the rest.
type krewManifest struct {
	Spec struct {
		Version                       string
		ShortDescription, Description string
		Platforms                     []struct {
			URI, SHA256, Bin string
			Selector         struct{ MatchLabels map[string]string }
		}
	}
}

// checkKrewManifest has krew's own program check the manifest, and compares it with the archives that it names.
func checkKrewManifest(t *testing.T, dist string) {
	t.Helper()
	validator, err := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(sidecar.Root(), "test/tools/krew"), "tool", "-n", "validate-krew-manifest").Output()
	require.NoError(t, err)
	output, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(validator)), "-skip-install", "-manifest", filepath.Join(dist, krewFile)).CombinedOutput()
	require.NoError(t, err, string(output))
	require.NotContains(t, string(output), "exceeds", "krew's index wants short lines")
	var manifest krewManifest
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, dist, krewFile)), &manifest))
	require.Equal(t, testVersion, manifest.Spec.Version)
	for _, platform := range manifest.Spec.Platforms {
		archive := path.Base(platform.URI)
		require.Equal(t, repository+"/releases/download/"+testVersion+"/"+archive, platform.URI)
		require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(t, dist, archive)))), platform.SHA256)
	}
}

// TestKrewPlatforms: the manifest has an archive for each platform, and for Windows a program that it can run.
func TestKrewPlatforms(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := &release{Source: &source.Source{Root: root, Version: testVersion}, platforms: allPlatforms, out: io.Discard}
	require.NoError(t, os.Mkdir(r.distPath(), 0o755))
	for _, platform := range allPlatforms {
		require.NoError(t, os.WriteFile(r.distPath(r.archiveName(plugin, platform)), []byte(platform.String()), 0o600))
	}
	require.NoError(t, r.writeKrewManifest(t.Context()))
	checkKrewManifest(t, r.distPath())
	var manifest krewManifest
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, r.distPath(), krewFile)), &manifest))
	bins := map[string]string{}
	for _, platform := range manifest.Spec.Platforms {
		bins[platform.Selector.MatchLabels["os"]+"/"+platform.Selector.MatchLabels["arch"]] = platform.Bin
	}
	require.Equal(t, map[string]string{
		"linux/amd64": "kubectl-dra", "linux/arm64": "kubectl-dra", "darwin/amd64": "kubectl-dra", "darwin/arm64": "kubectl-dra",
		"windows/amd64": "kubectl-dra.exe", "windows/arm64": "kubectl-dra.exe",
	}, bins)
}
