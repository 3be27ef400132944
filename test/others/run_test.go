package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// program writes a program that a runner takes for a suite: it reports no spec, and runs a command.
func program(t *testing.T, command string) (path, source string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "suite")
	source = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "suite_test.go"), nil, 0o600))
	script := fmt.Sprintf("#!/bin/sh\nfor a; do case $a in -ginkgo.json-report=*) echo '[]' > ${a#*=};; esac; done\n%s\n", command)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700)) //nolint:gosec // it is to be run
	return path, source
}

// TestReportsGoElsewhere: what a suite reports does not go into its source, which is in the module
// cache, and a suite that writes there nevertheless has failed.
func TestReportsGoElsewhere(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	r := &runner{logs: logs}
	run := func(command string) error {
		path, source := program(t, command)
		_, err := r.test(t.Context(), suite{name: "s"}, []string{path}, source, "kubeconfig", filepath.Join(logs, "s.log"))
		return err
	}
	require.NoError(t, run(`echo report > "${ARTIFACTS:-.}/junit.xml"`))
	require.FileExists(t, filepath.Join(logs, "s", "junit.xml"))
	require.ErrorContains(t, run(`echo report > junit.xml`), "junit.xml into its source")
}

// TestProgramsAreBuiltBeforeTheCluster: what cannot be built is known before a cluster is
// started, which would be idle while the compiler runs.
func TestProgramsAreBuiltBeforeTheCluster(t *testing.T) {
	t.Parallel()
	errBuild := errors.New("the compiler has failed")
	_, err := startWorld(t.Context(), suite{
		name:    "s",
		cluster: cluster.Options{KubernetesVersion: "no version"}, // starting it fails
		build:   func() (string, error) { return "", errBuild },
	})
	require.ErrorIs(t, err, errBuild)
}
