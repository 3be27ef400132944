package main

import (
	"github.com/kwok-dra/kwok-dra/internal/dractl/checkautoscaler"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// schedulerStatements lists what the judge of schedulers checks.
func schedulerStatements(string) (string, error) {
	return statementTable(drajudge.Statements()), nil
}

// autoscalerStatements lists what check-autoscaler checks.
func autoscalerStatements(string) (string, error) {
	return statementTable(checkautoscaler.Statements()), nil
}

func statementTable(statements []drajudge.Statement) string {
	var rows [][]string
	for _, statement := range statements {
		rows = append(rows, []string{code(statement.ID), string(statement.Level), statement.Text, statement.Source})
	}
	return table([]string{"statement", "level", "what holds", "source"}, rows)
}
