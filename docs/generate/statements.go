package main

import "github.com/kwok-dra/kwok-dra/pkg/drajudge"

// schedulerStatements lists what the judge of schedulers checks.
func schedulerStatements(string) (string, error) {
	var rows [][]string
	for _, statement := range drajudge.Statements() {
		rows = append(rows, []string{code(statement.ID), string(statement.Level), statement.Text, statement.Source})
	}
	return table([]string{"statement", "level", "what holds", "source"}, rows), nil
}
