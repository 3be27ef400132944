package world

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPreferredPort: where the usual port is taken, be it by this test or by
// another demo, the page has any.
func TestPreferredPort(t *testing.T) {
	if listener, err := net.Listen("tcp", loopbackAddress(usualPort)); err == nil {
		t.Cleanup(func() { require.NoError(t, listener.Close()) })
	}
	require.Equal(t, anyPort, preferredPort())
	require.Equal(t, "127.0.0.1:10246", loopbackAddress(usualPort))
}
