package karpenter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	require.Contains(t, Options{}.commandArguments(), "--ignore-dra-requests=true")
	withDevices := Options{InstanceTypes: "types.json", Templates: []string{"a.yaml", "b.yaml"}}.commandArguments()
	require.Contains(t, withDevices, "--ignore-dra-requests=false")
	require.Contains(t, withDevices, "--instance-types-file-path=types.json")
	require.Contains(t, withDevices, "--resource-pool-templates-file-paths=a.yaml,b.yaml")
}
