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
	// Title is above the table where there are several.
	Title   string
	Columns []Column
	Cells   [][]string
	// Tail keeps the last rows of a table that is too long for a terminal, and not the
	// first.
	Tail bool

	marked map[int]bool
	// omitted is how many rows are left out below, and tight says that there is little
	// space between columns.
	omitted int
	tight   bool
}

// Add adds a row, with a cell for each column, those of the wide table too.
func (r *Rows) Add(cells ...string) {
	r.Cells = append(r.Cells, cells)
}

// Mark marks the row that was added last.
func (r *Rows) Mark() {
	if r.marked == nil {
		r.marked = map[int]bool{}
	}
	r.marked[len(r.Cells)-1] = true
}

// Print prints the table, or the wide one.
func (r *Rows) Print(out io.Writer, format Format) error {
	least, between := 6, gap
	if r.tight {
		least, between = 0, tightGap
	}
	writer := tabwriter.NewWriter(out, least, 4, between, ' ', tabwriter.TabIndent)
	header := make([]string, len(r.Columns))
	for i, column := range r.Columns {
		header[i] = strings.ToUpper(column.Name)
	}
	lines := []string{strings.Join(r.shown(header, format), "\t")}
	for _, cells := range r.Cells {
		lines = append(lines, strings.Join(r.shown(cells, format), "\t"))
	}
	if r.omitted > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", r.omitted))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(writer, line); err != nil {
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
