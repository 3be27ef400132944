package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKustomization(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := loopbackService(map[string]any{"name": "manager"}, 1234)
	k := kustomization{dir: dir, given: []string{filepath.Join(dir, "..", "given")}, component: filepath.Join(dir, "changes"), service: service}
	require.NoError(t, k.write())
	written, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	require.NoError(t, err)
	require.YAMLEq(t, "{resources: [service.yaml, ../given], components: [changes]}", string(written))
	written, err = os.ReadFile(filepath.Join(dir, "service.yaml"))
	require.NoError(t, err)
	require.YAMLEq(t, `
apiVersion: v1
kind: Service
metadata: {name: manager}
spec: {type: ExternalName, externalName: 127.0.0.1, ports: [{port: 1234}]}
`, string(written))
}
