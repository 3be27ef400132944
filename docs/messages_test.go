package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ofOthers are messages on the page about troubleshooting that Kubernetes, kwok, kubectl or Go write.
var ofOthers = []string{
	"device class ... does not exist", "cannot allocate all claims", "CEL runtime error: no such key: type", `unknown field "spec.resourceClaims[0].source"`,
	`no matches for kind "ResourcePoolTemplate"`, "is forbidden", "bind: invalid argument",
}

// madeOfParts are messages that internal/extensions/explaining/selection makes of parts; its test has it make them.
var madeOfParts = []string{"template h100 selects 0 of 3 nodes: node.kubernetes.io/instance-type is p5.49xlarge, must be p5.48xlarge (node gpu-0)"}

// isCommand matches code that is no message: commands, and fields with values.
var isCommand = regexp.MustCompile(`^(kubectl|kwok-dractl|--|[a-zA-Z.]+: \{)`)

// TestMessagesExist: what the page about troubleshooting says that a program prints is in the code of that program,
// with whatever names and numbers.
func TestMessagesExist(t *testing.T) {
	t.Parallel()
	literals := messages(t)
	page := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, "docs/troubleshooting.md"), "")
	seen := 0
	for _, code := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(page, -1) {
		message := code[1]
		if !strings.Contains(message, " ") || isCommand.MatchString(message) || slices.Contains(slices.Concat(ofOthers, madeOfParts), message) {
			continue
		}
		seen++
		for _, part := range regexp.MustCompile(`\.\.\.|: `).Split(message, -1) {
			part = strings.Trim(part, ` "`)
			require.True(t, slices.ContainsFunc(literals, func(literal string) bool { return says(literal, part) }), "no program prints %q of %q", part, message)
		}
	}
	require.Greater(t, seen, 5)
	for _, message := range slices.Concat(ofOthers, madeOfParts) {
		require.Contains(t, page, "`"+message+"`", "the page does not have it any more")
	}
	require.False(t, slices.ContainsFunc(literals, func(literal string) bool { return says(literal, "template h100 takes 0 of 3 nodes") }))
}

// verb is a place in a message where a name or a number is.
var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// says reports whether a message has a text in it, or is the text with names and numbers, or begins with it.
func says(literal, text string) bool {
	if strings.Contains(verb.ReplaceAllString(literal, ""), text) {
		return true
	}
	begins, _, _ := strings.Cut(literal, ": ")
	fixed := verb.Split(begins, -1)
	for i := range fixed {
		fixed[i] = regexp.QuoteMeta(fixed[i])
	}
	return len(strings.Fields(strings.Join(fixed, " "))) > 1 && regexp.MustCompile("^"+strings.Join(fixed, ".+?")+"$").MatchString(text)
}

// messages are the texts in the code of the programs.
func messages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "pkg/") && !strings.HasPrefix(path, "internal/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, read(t, path), 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
					all = append(all, text)
				}
			}
			return true
		})
	}
	return all
}
