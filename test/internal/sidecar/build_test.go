package sidecar

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestModulesShareVersions: a package at two versions, and each package that
// imports it, is compiled twice.
func TestModulesShareVersions(t *testing.T) {
	product := versions(t, ".", "./cmd/...")
	for dir, packages := range map[string]string{
		"test/cluster":   "./...",
		"test":           "./...",
		"test/karpenter": "./demo",
	} {
		for module, version := range versions(t, dir, packages) {
			if want, shared := product[module]; shared && version != want {
				t.Errorf("%s has %s %s, the product has %s: give both the newer one", dir, module, version, want)
			}
		}
	}
}

// versions maps the modules that packages depend on to their versions.
func versions(t *testing.T, dir, packages string) map[string]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", packages)
	list.Dir = filepath.Join(Root(), dir)
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, version, found := strings.Cut(strings.TrimSpace(line), " "); found && !strings.Contains(module, "kwok-dra") {
			modules[module] = version
		}
	}
	require.NotEmpty(t, modules)
	return modules
}
