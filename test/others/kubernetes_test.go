package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/others/report"
)

func TestKubernetesLeftOut(t *testing.T) {
	t.Parallel()
	const prefix = "[sig-node] [DRA] kubelet [Feature:DynamicResourceAllocation] "
	specs := []report.Spec{
		{Name: prefix + "on single node supports extended resources together with ResourceClaim [Serial]", Result: report.LeftOut},
	}
	kubernetes.explain(specs)
	require.Contains(t, specs[0].Message, "device plugin")
	require.NotRegexp(t, kubernetes.without(), prefix+"registers plugin")
	require.NotRegexp(t, kubernetes.without(), prefix+"should report device health with custom messages")
}

func TestSame(t *testing.T) {
	t.Parallel()
	const before, after = "KIND NAME\nPod own-0\n", "KIND NAME\nPod own-1\n"
	require.NoError(t, same(before, before))
	require.EqualError(t, same(before, after), "compare objects of kwok-dra's own: somebody has written to them, they were\n"+before+"and are\n"+after)
}
