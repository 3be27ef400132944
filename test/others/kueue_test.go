package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	var given map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(`
featureGates: {KueueDRAIntegration: true}
leaderElection: {leaderElect: true}
metrics: {bindAddress: ":8443", enableClusterQueueResources: true}
resources: {deviceClassMappings: [{name: gpu}]}
`), &given))
	merge(given, kueueProcess(1234, "/certificates"))
	merged, err := yaml.Marshal(given)
	require.NoError(t, err)
	require.YAMLEq(t, `
featureGates: {KueueDRAIntegration: true, VisibilityOnDemand: false}
health: {healthProbeBindAddress: "0"}
internalCertManagement: {enable: true, webhookServiceName: kueue}
leaderElection: {leaderElect: true, resourceNamespace: kueue-system}
metrics: {bindAddress: "0", enableClusterQueueResources: true}
resources: {deviceClassMappings: [{name: gpu}]}
webhook: {certDir: /certificates, host: 127.0.0.1, port: 1234}
`, string(merged))
}
