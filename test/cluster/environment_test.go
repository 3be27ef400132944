package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	require.Equal(t, `'/home/o'\''neil/a b'`, quoteWord("/home/o'neil/a b"))
}
