package output

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Column is a column of a table.
type Column struct {
	Name string
	// Wide is for columns that only the wide table has.
	Wide bool
}

// Rows are a table, printed as kubectl prints them.
type Rows struct {
	Columns []Column
	Cells   [][]string
}

// Add adds a row, with a cell for each column, those of the wide table too.
func (r *Rows) Add(cells ...string) {
	r.Cells = append(r.Cells, cells)
}

// Print prints the table, or the wide one.
func (r *Rows) Print(out io.Writer, format Format) error {
	writer := tabwriter.NewWriter(out, 6, 4, 3, ' ', tabwriter.TabIndent)
	header := make([]string, len(r.Columns))
	for i, column := range r.Columns {
		header[i] = strings.ToUpper(column.Name)
	}
	for _, cells := range append([][]string{header}, r.Cells...) {
		if _, err := fmt.Fprintln(writer, strings.Join(r.shown(cells, format), "\t")); err != nil {
			return err
		}
	}
	return writer.Flush()
}

func (r *Rows) shown(cells []string, format Format) []string {
	var shown []string
	for i, cell := range cells {
		if !r.Columns[i].Wide || format == Wide {
			shown = append(shown, cell)
		}
	}
	return shown
}
