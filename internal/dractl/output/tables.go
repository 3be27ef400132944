package output

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Tables are printed one below the other.
type Tables []*Rows

// Layout says how tables are printed.
type Layout struct {
	Format Format
	// Width and Height are what there is room for. 0 is without limit.
	Width, Height int
	// Colours shows rows that are marked in red.
	Colours bool
	// NoHeaders leaves out titles and headers.
	NoHeaders bool
}

// The colours of terminals.
const (
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// Print prints the tables, each below its title. Without room for all lines it cuts the longest tables, and
// without room for a row of each table it leaves out the last ones.
func (t Tables) Print(out io.Writer, l Layout) error {
	printed := make([]*block, len(t))
	for i, rows := range t {
		printed[i] = rows.layOutTable(l)
	}
	if l.Height > 0 {
		printed = cutTablesToHeight(printed, l.Height)
	}
	var text strings.Builder
	for i, table := range printed {
		if i > 0 {
			text.WriteByte('\n')
		}
		for _, line := range slices.Concat(table.head, table.bodyLines()) {
			text.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// block has the lines of a table: those above its rows, and those of each row.
type block struct {
	head []string
	rows [][]string
	tail bool
}

func (b *block) bodyLines() []string { return slices.Concat(b.rows...) }

func cutTablesToHeight(tables []*block, height int) []*block {
	overhead := func() int {
		lines := len(tables) - 1
		for _, table := range tables {
			lines += len(table.head)
		}
		return lines
	}
	for len(tables) > 1 && height < overhead()+len(tables) {
		tables = tables[:len(tables)-1]
	}
	lengths := make([]int, len(tables))
	for i, table := range tables {
		lengths[i] = len(table.bodyLines())
	}
	room := height - overhead()
	total := func(limit int) (lines int) {
		for _, length := range lengths {
			lines += min(length, limit)
		}
		return lines
	}
	limit := slices.Max(append(lengths, 1))
	for limit > 1 && total(limit) > room {
		limit--
	}
	spare := room - total(limit)
	for i, table := range tables {
		lines := limit
		if more := min(lengths[i]-limit, spare); more > 0 {
			lines, spare = limit+more, spare-more
		}
		table.cutToLines(lines)
	}
	return tables
}

// cutToLines leaves as many rows as fit into a number of lines, with one that says how many there are more.
func (b *block) cutToLines(lines int) {
	if len(b.bodyLines()) <= lines {
		return
	}
	rows := slices.Clone(b.rows)
	if b.tail {
		slices.Reverse(rows)
	}
	kept := 0
	for left := lines - 1 - len(rows[0]); left >= 0 && kept < len(rows)-1; left -= len(rows[kept]) {
		kept++
	}
	more := len(rows) - kept
	if b.tail {
		b.head = append([]string{fmt.Sprintf("… %d more before", more)}, b.head...)
		b.rows = b.rows[more:]
		return
	}
	b.rows = append(b.rows[:kept:kept], []string{fmt.Sprintf("… and %d more", more)})
}
