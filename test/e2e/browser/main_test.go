package browser

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// listen takes a port again that was given back a moment ago.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	return listener
}
