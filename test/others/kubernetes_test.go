package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/others/report"
)

func TestKubernetesLeftOut(t *testing.T) {
	t.Parallel()
	const prefix = "[sig-node] [DRA] "
	specs := []report.Spec{
		{Name: prefix + "kubelet [Feature:DynamicResourceAllocation] registers plugin"},
		{Name: prefix + "kubelet [Feature:DynamicResourceAllocation] on single node supports extended resources together with ResourceClaim [Serial]"},
		{Name: prefix + "kubelet [Feature:DynamicResourceAllocation] should report device health with custom messages"},
	}
	for i := range specs {
		specs[i].Result = report.LeftOut
	}
	kubernetes.explain(specs)
	require.Contains(t, specs[0].Message, "by way of a program that runs in a Pod")
	require.Contains(t, specs[1].Message, "device plugin")
	require.Contains(t, specs[2].Message, "health of devices")
	require.NotRegexp(t, kubernetes.without(), prefix+"control plane supports reusing resources")
	require.NotRegexp(t, kubernetes.without(), prefix+"control plane [FeatureGate:DRAResourcePoolStatus] [Alpha] should filter by pool name")
}

func TestSame(t *testing.T) {
	t.Parallel()
	const before, after = "KIND NAME\nPod own-0\n", "KIND NAME\nPod own-1\n"
	require.NoError(t, same(before, before))
	require.EqualError(t, same(before, after), "compare objects of kwok-dra's own: somebody has written to them, they were\n"+before+"and are\n"+after)
}
