package output

import (
	"cmp"
	"io"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
)

// Column is a column of a table.
type Column struct {
	Name string
	// Wide is for columns that only the wide table has.
	Wide bool
	// Spare columns are left out of a table that would be too wide, the highest number first.
	// 0 is for a column that is never left out. The wide table has all.
	Spare int
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

// OrNone joins texts for a cell, which has None without any.
func OrNone(texts ...string) string { return cmp.Or(strings.Join(texts, ","), None) }

// Print prints the table, or the wide one, as wide as the terminal.
func (r *Rows) Print(out io.Writer, format Format) error {
	return Tables{r}.Print(out, Layout{Format: format, Width: screen.Width(out)})
}
