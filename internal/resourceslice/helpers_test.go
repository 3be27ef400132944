package resourceslice

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/internal/testing/slicetest"
)

var fakeNode = slicetest.FakeNode

// sliceOf makes the slice of a node's pool of one device, without a generation.
func sliceOf(t testing.TB, node *corev1.Node) *resourcev1.ResourceSlice {
	t.Helper()
	pool := devices.Pool{Driver: "d", Name: node.Name, Devices: []resourcev1.Device{{Name: "gpu"}}}
	needs, err := plan.New("", node, &features.Fitted{Pools: []devices.Pool{pool}, Layout: devices.CountersApart}, nil)
	require.NoError(t, err)
	needs.Create[0].Spec.Pool.Generation = 0
	return needs.Create[0]
}
