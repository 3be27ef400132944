package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// mostOfRule is how much of what was found is in the table; the rest is in the log.
const mostOfRule = 120

// printTable prints what became of the mutants. The error names those of which
// nothing is proven.
func printTable(out io.Writer, outcomes []outcome) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nMUTANT\tFOUND\tAFTER\tBY")
	var bad []string
	for _, o := range outcomes {
		found, by := fmt.Sprintf("at seed %d", o.verdict.seed), o.verdict.rule
		if o.err != nil {
			found, by = "not proven", o.err.Error()
			bad = append(bad, o.mutant.name)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", o.mutant.name, found, o.took.Round(time.Second), shortenText(by))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	if len(bad) > 0 {
		return fmt.Errorf("not proven: %s", strings.Join(bad, ", "))
	}
	return nil
}

func shortenText(text string) string {
	text, _, cut := strings.Cut(text, "\n")
	if len(text) > mostOfRule {
		text, cut = strings.ToValidUTF8(text[:mostOfRule], ""), true
	}
	if cut {
		text += " ..."
	}
	return text
}
