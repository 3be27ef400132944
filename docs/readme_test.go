package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxReadmeWords keeps README.md to one page.
const maxReadmeWords = 950

func TestReadmeIsOnePage(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(strings.Fields(read(t, "README.md"))), maxReadmeWords)
}
