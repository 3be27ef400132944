package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPagesAreGenerated: `make generate-docs` has been run since the code changed.
func TestPagesAreGenerated(t *testing.T) {
	t.Parallel()
	const root = "../.."
	pages, err := pages(root)
	require.NoError(t, err)
	used := map[string]bool{}
	for _, page := range pages {
		written, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, found := range part.FindAllStringSubmatch(string(written), -1) {
			used[found[1]] = true
		}
		filled, err := fill(root, string(written))
		require.NoError(t, err, page)
		require.Equal(t, filled, string(written), "%s is out of date: run make generate-docs", page)
	}
	for name := range generators {
		require.True(t, used[name], "no page has the generated part %s", name)
	}
}

func TestConstantNeedsAMeaning(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(root+"/names.go", []byte("package p\n\nconst A = \"a\"\n"), 0o600))
	_, err := constantRows(root, "names.go", func(constant) []string { return nil }, "")
	require.ErrorContains(t, err, "names.go: constant A needs a comment")
}

func TestProse(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Shows:\n\n```text\n<a>\n  b\n```\n\nand &lt;x>.", prose("Shows:\n\n  <a>\n    b\n\nand <x>."))
}
