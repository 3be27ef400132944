package view

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// identifier matches the names of variables that a shell shows.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// exportVariables prints variables as export does, in the shell that a container runs: as ash and dash, which
// are sh in most images, and else as bash.
func exportVariables(env, command []string) []string {
	var all strings.Builder
	for _, variable := range slices.Sorted(slices.Values(variableNames(env))) {
		switch value := valueOf(env, variable); {
		case !identifier.MatchString(variable):
		case len(command) > 0 && slices.Contains([]string{"sh", "ash", "dash"}, path.Base(command[0])):
			all.WriteString("export " + variable + "='" + strings.ReplaceAll(value, "'", `'"'"'`) + "'\n")
		default:
			all.WriteString("declare -x " + variable + "=" + quoteForBash(value) + "\n")
		}
	}
	return slices.Collect(strings.Lines(all.String()))
}

// variableNames returns the names of variables. It ignores entries that are not NAME=value.
func variableNames(env []string) []string {
	var all []string
	for _, variable := range env {
		if name, _, ok := strings.Cut(variable, "="); ok && name != "" {
			all = append(all, name)
		}
	}
	return all
}

// valueOf returns the value of a variable. The last one of a name counts.
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

// quoteForBash quotes a value as bash does: with $” if any character does not print.
func quoteForBash(value string) string {
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

// criLog makes a log of lines, each with its end, as container runtimes write it. kwok reads that.
func criLog(at time.Time, lines []string) string {
	var log strings.Builder
	for _, line := range lines {
		log.WriteString(at.UTC().Format(time.RFC3339Nano) + " stdout F " + line)
	}
	return log.String()
}
