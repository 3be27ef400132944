package v1alpha1

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestEventMessage: the API server refuses an event whose message is longer
// than 1024 bytes (ValidateEventCreate), and protobuf refuses broken UTF-8.
func TestEventMessage(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", EventMessage(errors.New("short")))
	require.Equal(t, "a?b", EventMessage(errors.New("a\xffb")))
	exact := strings.Repeat("a", 1024)
	require.Equal(t, exact, EventMessage(errors.New(exact)))
	for _, char := range []string{"a", "é", "€", "😀"} {
		for shift := range 4 {
			given := strings.Repeat("x", shift) + strings.Repeat(char, 1025)
			got := EventMessage(errors.New(given))
			require.LessOrEqual(t, len(got), 1024)
			require.Greater(t, len(got), 1024-utf8.UTFMax)
			require.True(t, utf8.ValidString(got))
			require.True(t, strings.HasSuffix(got, "..."))
			require.True(t, strings.HasPrefix(given, strings.TrimSuffix(got, "...")))
		}
	}
}
