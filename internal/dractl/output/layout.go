package output

import (
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
)

const (
	// gap is the space between two columns, and narrowGap that of a table that is too wide with it.
	gap       = 3
	narrowGap = 2
	// indent is before what is below the first line of a row or of a text.
	indent = 2
	// None is what empty cells have, as in tables of kubectl.
	None = "<none>"
	// readable is how narrow text is wrapped before a column is left out.
	readable = 28
)

// cell is a column as it is printed.
type cell struct {
	Column
	index int
	// natural is the width of the widest cell, least that of the longest word, and width
	// what the column gets.
	natural, least, width int
}

// readableWidth is a width at which the column reads well.
func (c *cell) readableWidth() int { return max(c.least, min(c.natural, readable)) }

// layOutTable lays out a table for a width. It never cuts a name. A table that is too wide gets, in this
// order, narrower gaps, fewer columns, text wrapped between words, and several lines for each row.
func (r *Rows) layOutTable(l Layout) *block {
	columns := r.measureColumns(l)
	between, lines := gap, [][]*cell{columns}
	if wide := totalWidth(columns, gap, func(c *cell) int { return c.natural }); l.Width > 0 && wide > l.Width {
		between = narrowGap
		if l.Format != Wide {
			columns = withoutSpareColumns(columns, l.Width)
		}
		lines = foldColumns(columns, l.Width)
		for i, line := range lines {
			shrinkColumns(line, l.Width-min(i, 1)*indent)
		}
	}
	b := &block{tail: r.Tail}
	if !l.NoHeaders {
		b.head = r.headLines(lines, between, l.Width)
	}
	for i, cells := range r.Cells {
		row := rowLines(cells, lines, between, l.Width)
		if l.Colours && r.marked[i] {
			for j := range row {
				row[j] = red + row[j] + reset
			}
		}
		b.rows = append(b.rows, row)
	}
	return b
}

// headLines are the title and the names of the columns.
func (r *Rows) headLines(lines [][]*cell, between, width int) []string {
	var head []string
	if r.Title != "" {
		head = wrapText(r.Title, width, 0, anySpace)
	}
	names := make([]string, len(r.Columns))
	for i := range r.Columns {
		names[i] = strings.ToUpper(r.Columns[i].Name)
	}
	return append(head, rowLines(names, lines, between, width)...)
}

// withoutSpareColumns leaves out columns until the others fit and can be read well.
func withoutSpareColumns(columns []*cell, width int) []*cell {
	for totalWidth(columns, narrowGap, (*cell).readableWidth) > width {
		spare := slices.MaxFunc(columns, func(a, b *cell) int { return a.Spare - b.Spare })
		if spare.Spare == 0 {
			break
		}
		columns = slices.DeleteFunc(columns, func(c *cell) bool { return c == spare })
	}
	return columns
}

// measureColumns returns the columns of the format, with the widths that they need.
func (r *Rows) measureColumns(l Layout) []*cell {
	var columns []*cell
	for i, column := range r.Columns {
		if column.Wide && l.Format != Wide {
			continue
		}
		c := &cell{Column: column, index: i}
		if !l.NoHeaders {
			c.natural, c.least = utf8.RuneCountInString(column.Name), longestWordWidth(column.Name)
		}
		for _, cells := range r.Cells {
			cells[i] = strings.Map(func(r rune) rune {
				if unicode.IsControl(r) { // it would move the cursor out of the line
					return ' '
				}
				return r
			}, cells[i])
			c.natural, c.least = max(c.natural, utf8.RuneCountInString(cells[i])), max(c.least, longestWordWidth(cells[i]))
		}
		c.width = c.natural
		columns = append(columns, c)
	}
	return columns
}

func totalWidth(columns []*cell, between int, width func(*cell) int) int {
	all := (len(columns) - 1) * between
	for _, c := range columns {
		all += width(c)
	}
	return all
}

// foldColumns distributes columns to as many lines as they need.
func foldColumns(columns []*cell, width int) [][]*cell {
	fits := func(line []*cell, room int) bool {
		return totalWidth(line, narrowGap, func(c *cell) int { return c.least }) <= room
	}
	if fits(columns, width) {
		return [][]*cell{columns}
	}
	lines, room := [][]*cell{columns[:1]}, width
	for _, c := range columns[1:] {
		last := &lines[len(lines)-1]
		if longer := append(slices.Clone(*last), c); totalWidth(longer, narrowGap, (*cell).readableWidth) <= room && fits(longer, room) {
			*last = longer
			continue
		}
		lines, room = append(lines, []*cell{c}), width-indent
	}
	return lines
}

// shrinkColumns takes width from the widest columns until they fit, but never so much that a word is cut.
func shrinkColumns(columns []*cell, room int) {
	for totalWidth(columns, narrowGap, func(c *cell) int { return c.width }) > room {
		widest := slices.MaxFunc(columns, func(a, b *cell) int {
			return (min(a.width-a.least, 1) * a.width) - (min(b.width-b.least, 1) * b.width)
		})
		if widest.width == widest.least {
			return
		}
		widest.width--
	}
}

// rowLines returns the lines of a row, without lines below the first whose columns are empty in the row.
func rowLines(cells []string, lines [][]*cell, between, width int) []string {
	var all []string
	for i, columns := range lines {
		hasText := func(c *cell) bool { return cells[c.index] != "" && cells[c.index] != None }
		if i > 0 && !slices.ContainsFunc(columns, hasText) {
			continue
		}
		wrapped, height := make([][]string, len(columns)), 0
		for j, c := range columns {
			room := c.width
			if len(columns) == 1 && width > 0 { // a word that is too wide is no reason for other lines to be
				room = min(room, width-indent)
			}
			wrapped[j] = wrapText(cells[c.index], room, 0, orComma)
			height = max(height, len(wrapped[j]))
		}
		before := ""
		if i > 0 {
			// A name that needs the whole width gets it.
			taken := totalWidth(columns, between, func(c *cell) int { return c.width })
			before = strings.Repeat(" ", max(0, min(indent, width-taken)))
		}
		for k := range height {
			all = append(all, before+joinCells(columns, wrapped, k, between))
		}
	}
	return all
}

// joinCells returns a line of wrapped cells, side by side.
func joinCells(columns []*cell, wrapped [][]string, line, between int) string {
	var text strings.Builder
	for i, c := range columns {
		part := ""
		if line < len(wrapped[i]) {
			part = wrapped[i][line]
		}
		text.WriteString(part + strings.Repeat(" ", max(0, c.width-utf8.RuneCountInString(part))+between))
	}
	return strings.TrimRight(text.String(), " ")
}

// Text prints lines of text, each broken between words where it is wider than the terminal. The rest of a line
// is indented by two more.
func Text(out io.Writer, text string) error {
	width := screen.Width(out)
	var wrapped strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		before := len(line) - len(strings.TrimLeft(line, " "))
		wrapped.WriteString(strings.Join(wrapText(line, width, before+indent, anySpace), "\n") + "\n")
	}
	_, err := io.WriteString(out, wrapped.String())
	return err
}

// wrapText breaks text between words. The lines after the first hang by some spaces. A width of 0 is without limit.
func wrapText(text string, width, hanging int, after string) []string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range splitWords(text, after) {
		if strings.TrimSpace(line) != "" && utf8.RuneCountInString(strings.TrimRight(line+word, " ")) > width {
			lines, line = append(lines, strings.TrimRight(line, " ")), strings.Repeat(" ", hanging)
		}
		line += word
	}
	return append(lines, strings.TrimRight(line, " "))
}

// A word ends with one of these: cells of tables may be lists without spaces.
const anySpace, orComma = " ", " ,"

// splitWords returns the parts of a text that stay together.
func splitWords(text, after string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for text != "" {
			end := strings.IndexAny(text, after) + 1
			if end == 0 {
				end = len(text)
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

func longestWordWidth(text string) int {
	longest := 0
	for word := range splitWords(text, orComma) {
		longest = max(longest, utf8.RuneCountInString(strings.TrimRight(word, " ")))
	}
	return longest
}
