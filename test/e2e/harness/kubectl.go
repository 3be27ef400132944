package harness

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
)

// Kubectl runs kubectl with an input, and returns what it prints.
func (h *H) Kubectl(input string, arguments ...string) string {
	h.Helper()
	output, err := h.Cluster.KubectlInput(h.Context(), strings.NewReader(input), arguments...)
	require.NoError(h, err)
	return string(output)
}

// Missing says which of the words a text lacks.
func Missing(text string, words ...string) string {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Sprintf("%s has no %s", text, word)
		}
	}
	return ""
}
