package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commands are those of the last words.
func commands(words string) []string {
	var found []string
	for line := range strings.Lines(words) {
		if command, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(command, " ") {
			found = append(found, strings.TrimSpace(command))
		}
	}
	return found
}

func TestQuote(t *testing.T) {
	for path, want := range map[string]string{
		"/home/a/.cache/kwok-dra": "/home/a/.cache/kwok-dra",
		"/home/a b":               "'/home/a b'",
		"/home/it's":              `'/home/it'\''s'`,
		"/home/$x":                "'/home/$x'",
	} {
		require.Equal(t, want, quote(path))
	}
}
