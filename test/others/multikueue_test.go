package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCurlOfContainer: kubectl is told which Pod ends, and how.
func TestCurlOfContainer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700))
	curl := func(url string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(manifests(multiKueueName), "container", "curl"), url)
		cmd.Env = []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}

	said, err := curl("http://10.0.0.7:8080/readyz")
	require.NoError(t, err)
	require.Empty(t, said)

	said, err = curl("http://10.0.0.7:8080/exit?code=3&timeout=2s&wait=2s")
	require.NoError(t, err)
	require.Equal(t, "annotate pods --all-namespaces --field-selector status.podIP=10.0.0.7 exit-code=3\n", said)

	said, err = curl("http://10.0.0.7:8080/shell")
	require.Error(t, err)
	require.Contains(t, said, "play curl http://10.0.0.7:8080/shell: want ")
}
