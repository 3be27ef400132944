// Package match compares what a page says that a command prints with what it has
// printed.
package match

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// AnyLines stands for any lines. It has a line of its own.
	AnyLines = "..."
	// AnyText stands for any text within a line.
	AnyText = "…"
)

// passing is what differs from run to run, and what it is compared as.
var passing = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "TIME"},
	{regexp.MustCompile(`\b(127\.0\.0\.1|localhost):\d+\b`), "$1:PORT"},
	{regexp.MustCompile(`\b(\d+[ydhm])*\d+(\.\d+)?([ydhm]|ms|µs|s)\b`), "AGE"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ms\b`), "AGE"},
	// What API servers and controllers add to names, in the letters that they use.
	{regexp.MustCompile(`-([bcdfghjklmnpqrstvwxz2456789]{6,10}-)?[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-HASH"},
}

// progress is a line that kwok-dractl prints where a command takes longer than two
// seconds.
var progress = regexp.MustCompile(`(?m)^\S.* \.\.\. (\d+ of \d+, )?\d+ s\n?`)

var spaces = regexp.MustCompile(`[ \t]+`)

// Output tells what is wrong with what was printed, or returns nil. Ages, times,
// ports, and names that are made up count as equal, and so do the widths of columns.
func Output(want, got string) error {
	wanted, given := comparedLines(want), comparedLines(got)
	if matchLines(wanted, given, matchLine) {
		return nil
	}
	return fmt.Errorf("it printed:\n%s\nThe page says:\n%s", indentLines(got), indentLines(want))
}

// WithoutProgress returns what a command prints on any machine, however busy.
func WithoutProgress(text string) string { return progress.ReplaceAllString(text, "") }

// comparedLines are the lines of a text as they are compared.
func comparedLines(text string) []string {
	text = strings.TrimSpace(WithoutProgress(text))
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		for _, p := range passing {
			line = p.pattern.ReplaceAllString(line, p.replacement)
		}
		all[i] = strings.TrimSpace(spaces.ReplaceAllString(line, " "))
	}
	return all
}

// matchLines reports whether the lines match, where AnyLines stands for any of them. It
// needs to remember the last AnyLines only: what came before has matched.
func matchLines(want, got []string, equal func(want, got string) bool) bool {
	w, g, last, from := 0, 0, -1, 0
	for g < len(got) {
		switch {
		case w < len(want) && want[w] == AnyLines:
			last, from = w, g
			w++
		case w < len(want) && equal(want[w], got[g]):
			w, g = w+1, g+1
		case last >= 0:
			from++
			w, g = last+1, from
		default:
			return false
		}
	}
	for w < len(want) && want[w] == AnyLines {
		w++
	}
	return w == len(want)
}

// matchLine reports whether a line matches, where AnyText stands for any text.
func matchLine(want, got string) bool {
	parts := strings.Split(want, AnyText)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(got)
}

func indentLines(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
