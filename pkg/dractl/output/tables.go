package output

import (
	"io"
	"strings"
)

// Tables are printed one below the other.
type Tables []*Rows

// The colours of terminals.
const (
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// Print prints the tables, each below its title. Rows that are marked are red if colours are
// wanted.
func (t Tables) Print(out io.Writer, format Format, colours bool) error {
	var text strings.Builder
	for i, rows := range t {
		if i > 0 {
			text.WriteByte('\n')
		}
		if rows.Title != "" {
			text.WriteString(rows.Title + "\n")
		}
		var table strings.Builder
		if err := rows.Print(&table, format); err != nil {
			return err
		}
		number := -1 // of the row; the header is before the first
		for line := range strings.Lines(table.String()) {
			if colours && rows.marked[number] {
				line = red + strings.TrimSuffix(line, "\n") + reset + "\n"
			}
			text.WriteString(line)
			number++
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
