package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

// maturities are those of Kubernetes.
var maturities = regexp.MustCompile(`^(alpha|beta|stable|as in Kubernetes)\b`)

// stabilityRows are the rows of a table of the page, by the heading above it.
func stabilityRows(t *testing.T, heading string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../reference/stability.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | "))
		}
	}
	require.Greater(t, len(rows), 2, heading)
	return rows[2:]
}

// TestMaturityOfEachCommand: whoever adds a command says how stable it is.
func TestMaturityOfEachCommand(t *testing.T) {
	t.Parallel()
	var features []string
	for _, row := range stabilityRows(t, "Features") {
		require.Len(t, row, 3, "feature, since, maturity")
		require.Regexp(t, maturities, row[2], row[0])
		if strings.Contains(row[0], "`kwok-dractl`") {
			features = append(features, row[0])
		}
	}
	root := dractl.New(cli.Streams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	for _, command := range root.Commands() {
		if !command.IsAvailableCommand() || command.Name() == "help" {
			continue
		}
		require.True(t, slices.ContainsFunc(features, func(feature string) bool { return strings.Contains(feature, "`"+command.Name()+"`") }),
			"docs/reference/stability.md does not name kwok-dractl %s", command.Name())
	}
}

var runningExample = regexp.MustCompile(`(?s)\nfunc Example\w*\(\) \{.*?\n\t// Output:`)

// TestPublicPackagesHaveRunningExamples: who may import a package sees how, in code that is run.
func TestPublicPackagesHaveRunningExamples(t *testing.T) {
	t.Parallel()
	for _, row := range stabilityRows(t, "Go packages") {
		require.Regexp(t, maturities, row[2], row[0])
		path := regexp.MustCompile("`(pkg/[^`]+)`").FindStringSubmatch(row[0])
		require.NotNil(t, path, row[0])
		examples, err := os.ReadFile(filepath.Join("..", "..", path[1], "example_test.go"))
		require.NoError(t, err)
		require.Regexp(t, runningExample, string(examples), path[1])
	}
}
