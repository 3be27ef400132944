package trial

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// ChooseStatements returns the statements whose ids match an expression.
func ChooseStatements(all []drajudge.Statement, expression string) ([]drajudge.Statement, error) {
	matches, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("parse --only %q: %w", expression, err)
	}
	var chosen []drajudge.Statement
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
		if matches.MatchString(s.ID) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("parse --only %q: matches none of %s", expression, strings.Join(ids, ", "))
	}
	return chosen, nil
}

// PrintStatements lists statements.
func PrintStatements(out io.Writer, format output.Format, statements []drajudge.Statement) error {
	if format == output.JSON {
		return output.Value(out, format, statements)
	}
	rows := output.Rows{Columns: []output.Column{{Name: "id"}, {Name: "level"}, {Name: "statement"}, {Name: "source"}}}
	for _, s := range statements {
		rows.Add(s.ID, string(s.Level), s.Text, s.Source)
	}
	return rows.Print(out, output.Table)
}

// distinct returns texts in their order, each once.
func distinct(texts []string) []string {
	var found []string
	for _, text := range texts {
		if !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}
