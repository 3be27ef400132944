package resourceslice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckStored(t *testing.T) {
	t.Parallel()
	sent := sliceOf(t, fakeNode("n", true))
	stored := sent.DeepCopy()
	stored.ResourceVersion = "7"
	require.NoError(t, checkStored(sent, stored))
	stored.Spec.Devices[0].Name = "other"
	require.ErrorContains(t, checkStored(sent, stored), "publish slice "+sent.Name+": the API server stored something else than it was sent; look for admission plugins")
}
