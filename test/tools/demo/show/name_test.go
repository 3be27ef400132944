package show

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNameOf(t *testing.T) {
	name := nameOf(1000, "/home/a/kwok-dra")
	require.Regexp(t, `^demo-[0-9a-f]{8}$`, name)
	require.Equal(t, name, nameOf(1000, "/home/a/kwok-dra"), "the next run finds the cluster of the last")
	require.NotEqual(t, name, nameOf(1000, "/home/a/clone"), "another checkout")
	require.NotEqual(t, name, nameOf(1001, "/home/a/kwok-dra"), "another user")
}

func TestName(t *testing.T) {
	require.Regexp(t, `^demo-[0-9a-f]{8}$`, Name())
}
