package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostWords is how long README.md may be: one page.
const mostWords = 900

func TestReadmeIsOnePage(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(strings.Fields(read(t, "README.md"))), mostWords)
}

// phrases stop a reader, and what to write instead.
var phrases = map[string]string{
	"in the kubelet's place":       "standing in for the kubelet",
	"nodes that are not there":     "fake nodes",
	"says how far it is":           "shows progress",
	"takes another version":        "uses another version",
	"take it away again":           "uninstall",
	"can be told of":               "learns about",
	"others fit nowhere":           "others do not fit",
	"makes the kubelet's checks":   "performs the kubelet's checks",
	"stays whatever becomes of":    "remains",
	"breaks by a taint":            "taint it",
	"who may create":               "anyone who can create",
	"what it is told by":           "options",
	"only to whom":                 "only to users that",
	"otherwise than it is written": "normalized",
	"where something is wrong":     "troubleshooting",
	"copied to the letter":         "copied exactly",
}

var space = regexp.MustCompile(`\s+(?://\s*|#\s*)?`)

// TestEnglishIsPlain looks for phrases that read as if they were translated, in
// documents and in Go code, comments and messages alike.
func TestEnglishIsPlain(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, ".md", ".go") {
		if file == "docs/words_test.go" {
			continue
		}
		text := strings.ToLower(space.ReplaceAllString(read(t, file), " "))
		for phrase, instead := range phrases {
			if strings.Contains(text, phrase) {
				t.Errorf("%s says %q: write %q", file, phrase, instead)
			}
		}
	}
}
