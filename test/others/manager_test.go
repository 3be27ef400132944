package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManagerConfiguration(t *testing.T) {
	t.Parallel()
	given := filepath.Join(t.TempDir(), "given.yaml")
	require.NoError(t, os.WriteFile(given, []byte("{leaderElection: {leaderElect: true}, internalCertManagement: {enable: true}}"), 0o600))
	settings := managerSettings(1234, "jobset-system")
	merge(settings, jobSetManager.settings("/certificates"))
	file := filepath.Join(t.TempDir(), "configuration.yaml")
	require.NoError(t, writeConfiguration(file, given, settings))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.YAMLEq(t, `
health: {healthProbeBindAddress: "0"}
internalCertManagement: {enable: false}
leaderElection: {leaderElect: true, resourceNamespace: jobset-system}
metrics: {bindAddress: "0"}
webhook: {certDir: /certificates, host: 127.0.0.1, port: 1234}
`, string(written))
	require.ErrorContains(t, writeConfiguration(file, given+".none", settings), "read configuration: ")
}
