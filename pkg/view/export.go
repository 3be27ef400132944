package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// identifier is what a shell takes for a variable. It does not show others.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// exports prints variables as bash's export does, a line for each.
func exports(env []string) []string {
	var lines []string
	for _, variable := range slices.Sorted(slices.Values(names(env))) {
		if identifier.MatchString(variable) {
			lines = append(lines, "declare -x "+variable+"="+quote(valueOf(env, variable)))
		}
	}
	return lines
}

// names are those of variables, without those that are not NAME=value.
func names(env []string) []string {
	var all []string
	for _, variable := range env {
		if name, _, ok := strings.Cut(variable, "="); ok && name != "" {
			all = append(all, name)
		}
	}
	return all
}

// valueOf is the value of a variable, of several of that name the last one's.
func valueOf(env []string, name string) string {
	for _, variable := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

var (
	inDouble = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")
	inANSI   = map[rune]string{
		'\a': `\a`, '\b': `\b`, '\x1b': `\E`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`, '\'': `\'`, '\\': `\\`,
	}
)

// quote quotes a value as bash does: with $” if any character does not print.
func quote(value string) string {
	if !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return `"` + inDouble.Replace(value) + `"`
	}
	var quoted strings.Builder
	for _, r := range value {
		switch escaped, ok := inANSI[r]; {
		case ok:
			quoted.WriteString(escaped)
		case unicode.IsPrint(r):
			quoted.WriteRune(r)
		default:
			for _, b := range []byte(string(r)) {
				fmt.Fprintf(&quoted, `\%03o`, b)
			}
		}
	}
	return "$'" + quoted.String() + "'"
}

// criLog makes a log of lines as container runtimes write it, which kwok reads.
func criLog(at time.Time, lines []string) string {
	var log strings.Builder
	for _, line := range lines {
		log.WriteString(at.UTC().Format(time.RFC3339Nano) + " stdout F " + line + "\n")
	}
	return log.String()
}
