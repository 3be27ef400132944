package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	s := &suite{label: "DRA"}
	require.Equal(t, []string{"-ginkgo.label-filter=DRA", "-ginkgo.v", "-ginkgo.no-color", "-ginkgo.json-report=/logs/s.json"},
		s.arguments([]string{"e2e.test"}, "", "/logs/s.json"))
	require.Equal(t, []string{"-label-filter=DRA", "-v", "-no-color", "-output-dir=/logs", "-json-report=s.json", "-procs=8", "e2e.test"},
		s.arguments([]string{"ginkgo", "-procs=8", "e2e.test"}, "", "/logs/s.json"), "the program is the last one")
}

func TestRequiredVersion(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "go.mod")
	require.NoError(t, os.WriteFile(file, []byte("module m\n\nrequire github.com/onsi/ginkgo/v2 v2.28.1\n"), 0o600))
	version, err := requiredVersion(file, ginkgoModule)
	require.NoError(t, err)
	require.Equal(t, module.Version{Path: ginkgoModule, Version: "v2.28.1"}, version)
	_, err = requiredVersion(file, "example.com/other")
	require.ErrorContains(t, err, "it requires no example.com/other")
}
