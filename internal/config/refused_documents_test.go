package config

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/refused.txt anew")

const refusedFile = "testdata/refused.txt"

// TestRefused holds every word of what Decode says of bad documents.
func TestRefused(t *testing.T) {
	data, err := os.ReadFile(refusedFile)
	require.NoError(t, err)
	head, rest, _ := strings.Cut(string(data), "=== ")
	written := head
	for text := range strings.SplitSeq(rest, "\n=== ") {
		name, body, _ := strings.Cut(text, "\n")
		input, want, _ := strings.Cut(body, "=>\n")
		_, err := Decode("gpus.yaml", []byte(refused(input)))
		written += "=== " + name + "\n" + input + "=>\n"
		if err != nil {
			written += err.Error() + "\n\n"
		}
		t.Run(name, func(t *testing.T) {
			require.Error(t, err)
			require.NotContains(t, err.Error(), "regex")
			if !*update {
				require.Equal(t, strings.TrimSpace(want), err.Error())
			}
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(refusedFile, []byte(strings.TrimRight(written, "\n")+"\n"), 0o600))
	}
}

// refused is a whole document, or one with the spec.
func refused(input string) string {
	for _, line := range []string{"apiVersion:", "kind:", "---"} {
		if strings.HasPrefix(input, line) {
			return input
		}
	}
	indented := "  " + strings.ReplaceAll(strings.TrimSuffix(input, "\n"), "\n", "\n  ")
	return header + "kind: ResourcePoolTemplate\nmetadata: {name: h100}\nspec:\n" + indented + "\n"
}
