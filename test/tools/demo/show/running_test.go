package show

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuote(t *testing.T) {
	for path, want := range map[string]string{
		"/home/a/.cache/kwok-dra": "/home/a/.cache/kwok-dra",
		"/home/a b":               "'/home/a b'",
		"/home/it's":              `'/home/it'\''s'`,
		"/home/$x":                "'/home/$x'",
	} {
		require.Equal(t, want, quoteWord(path))
	}
}
