package output

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// gap is the space between two columns, and tightGap that of a table that is too wide
	// with it.
	gap      = 3
	tightGap = 1
	// narrowest is how far a column is cut.
	narrowest = 4
)

// Fit returns tables that fit a terminal. The widest columns are cut first, and the longest
// tables. If there is no room for a row of each table, the last ones are left out.
func (t Tables) Fit(format Format, width, height int) Tables {
	fitted := slices.Clone(t)
	for len(fitted) > 1 && height < fitted.overhead()+len(fitted) {
		fitted = fitted[:len(fitted)-1]
	}
	lengths := make([]int, len(fitted))
	for i, rows := range fitted {
		lengths[i] = len(rows.Cells)
	}
	room := height - fitted.overhead()
	limit := limitOf(lengths, room, 1)
	spare := room - sum(capped(lengths, limit))
	for i, rows := range fitted {
		lines := limit
		if lengths[i] > limit && spare > 0 {
			lines, spare = limit+1, spare-1
		}
		fitted[i] = rows.fit(format, width, lines)
	}
	return fitted
}

// overhead is the number of lines that are not rows: titles, headers, and empty lines between
// tables.
func (t Tables) overhead() int {
	lines := max(len(t)-1, 0)
	for _, rows := range t {
		lines++
		if rows.Title != "" {
			lines++
		}
	}
	return lines
}

// limitOf is the largest limit with which sizes, each cut to it, fit into a room, but not less
// than the least one.
func limitOf(sizes []int, room, least int) int {
	if len(sizes) == 0 {
		return least
	}
	limit := max(slices.Max(sizes), least)
	for limit > least && sum(capped(sizes, limit)) > room {
		limit--
	}
	return limit
}

func sum(sizes []int) int {
	all := 0
	for _, size := range sizes {
		all += size
	}
	return all
}

// fit cuts a table to a width, and to a number of lines for its rows.
func (r *Rows) fit(format Format, width, lines int) *Rows {
	fitted := &Rows{Title: r.Title, marked: r.marked}
	for _, column := range r.Columns {
		if !column.Wide || format == Wide {
			fitted.Columns = append(fitted.Columns, Column{Name: column.Name})
		}
	}
	kept, omitted := r.Cells, len(r.Cells)-lines+1
	switch {
	case omitted <= 1:
	case r.Tail:
		kept, fitted.Title = kept[omitted:], fmt.Sprintf("… %d more before", omitted)
	default:
		kept, fitted.omitted = kept[:lines-1], omitted
	}
	for _, cells := range kept {
		fitted.Add(slices.Clone(r.shown(cells, format))...)
	}
	fitted.narrow(width)
	return fitted
}

// narrow cuts the columns until the table is no wider than that: first headers that are wider than
// what is below them, then whole columns.
func (r *Rows) narrow(width int) {
	headers, values := make([]int, len(r.Columns)), make([]int, len(r.Columns))
	for i := range r.Columns {
		headers[i] = utf8.RuneCountInString(r.Columns[i].Name)
		for _, cells := range r.Cells {
			cells[i] = strings.Map(printable, cells[i])
			values[i] = max(values[i], utf8.RuneCountInString(cells[i]))
		}
	}
	gaps := len(r.Columns) - 1
	if sum(widest(headers, values)) <= width-gaps*gap {
		return
	}
	r.tight = true
	room := width - gaps*tightGap
	widths := widest(headers, values)
	for limit := slices.Max(headers); limit >= narrowest && sum(widths) > room; limit-- {
		widths = widest(capped(headers, limit), values)
	}
	whole := limitOf(widths, room, narrowest)
	for i := range r.Columns {
		r.Columns[i].Name = cut(r.Columns[i].Name, min(widths[i], whole))
		for _, cells := range r.Cells {
			cells[i] = cut(cells[i], whole)
		}
	}
}

func widest(a, b []int) []int {
	all := make([]int, len(a))
	for i := range a {
		all[i] = max(a[i], b[i])
	}
	return all
}

func capped(sizes []int, limit int) []int {
	all := make([]int, len(sizes))
	for i, size := range sizes {
		all[i] = min(size, limit)
	}
	return all
}

// printable keeps what would move the cursor out of a line.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func cut(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(width-1, 0)]) + "…"
	}
	return text
}
