package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOn(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct{ gates, apis map[string]bool }{
		"v1.34.4": {switchOn("DRAAdminAccess"), switchOn("resource.k8s.io/v1beta1")},
		"v1.36.3": {
			switchOn("DRAAdminAccess", "GangScheduling", "GenericWorkload"),
			switchOn("resource.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"),
		},
		"v1.37.2": {
			switchOn("DRAAdminAccess", "DRADeviceCompatibilityGroups", "GenericWorkload"),
			switchOn("resource.k8s.io/v1beta1"),
		},
	} {
		s := kubernetes
		s.cluster.FeatureGates = switchOn("DRAAdminAccess", "DRADeviceCompatibilityGroups", "GangScheduling", "GenericWorkload")
		s.cluster.RuntimeConfig = switchOn("resource.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2")
		s = s.on(version)
		require.Equal(t, want.gates, s.cluster.FeatureGates)
		require.Equal(t, want.apis, s.cluster.RuntimeConfig)
		require.Equal(t, version, s.cluster.KubernetesVersion)
		require.Equal(t, version, s.tests.Module.Version, "the specs are those of the cluster")
	}
	require.Empty(t, kubernetes.tests.Module.Version)
	require.Equal(t, kueueModule, kueueSuite("counter").on("v1.37.2").tests.Module)
}

func TestLeftOutSince(t *testing.T) {
	t.Parallel()
	const shared = "Test GPU allocation Should share 1 GPU among the Pods in each of 2 PodGroups"
	for _, test := range []struct {
		suite suite
		spec  string
	}{{draExampleDriver, shared}} {
		before, since := test.suite.on("v1.36.3"), test.suite.on("v1.37.2")
		require.NotRegexp(t, before.without(), test.spec)
		require.Regexp(t, since.without(), test.spec)
		require.Len(t, before.leftOut, len(test.suite.leftOut))
	}
}
