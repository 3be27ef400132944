package cached

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOlder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version, than string
		want          bool
	}{
		{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"10", "", false}, {"", "10", false}, {"x", "10", false},
	} {
		require.Equal(t, test.want, Older(test.version, test.than), "%s %s", test.version, test.than)
	}
}
