package strict

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	// where is the place of an error of the YAML library.
	where = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?`)
	// twice is a key that is there twice.
	twice = regexp.MustCompile(`^key (".*") already set in map`)
	// tab is a tab in the indentation.
	tab = regexp.MustCompile(`(?m)^ *\t`)
)

// explain says what the matter is with a text that is no YAML: the line, the
// YAML library's error, and the usual cause.
func explain(err error, document []byte) Problem {
	text := err.Error()
	found := where.FindStringSubmatch(text)
	rest, _, _ := strings.Cut(strings.TrimPrefix(text, found[0]), "\n")
	line, _ := strconv.Atoi(found[1])
	return Problem{Line: line, Text: cause(rest, document)}
}

func cause(rest string, document []byte) string {
	key := twice.FindStringSubmatch(rest)
	switch template := bareTemplate(rest, document); {
	case key != nil:
		return fmt.Sprintf("the field %s is there twice: remove one", key[1])
	case template != "":
		return fmt.Sprintf("no valid YAML: put templates in quotes, \"%s\"", template)
	case strings.Contains(rest, "cannot start any token") && tab.Match(document):
		return "no valid YAML: indent with blanks, not with tabs"
	case strings.Contains(rest, "mapping values are not allowed"):
		return `no valid YAML: put a value that has ": " in it in quotes`
	}
	return "no valid YAML: " + rest
}

// bareTemplate finds a template without quotes, which to YAML is an object, where
// the error may be due to it.
func bareTemplate(problem string, document []byte) string {
	if !strings.HasPrefix(problem, "invalid map key") && !strings.HasPrefix(problem, "did not find expected") {
		return ""
	}
	for line := range strings.Lines(string(document)) {
		before, after, has := strings.Cut(line, "{{")
		action, _, ends := strings.Cut(after, "}}")
		quoted := strings.Count(before, `"`)%2 == 1 || strings.Count(before, "'")%2 == 1
		if has && ends && !quoted && strings.TrimRight(before, " :,[{-") != strings.TrimRight(before, " ") {
			return "{{" + action + "}}"
		}
	}
	return ""
}
