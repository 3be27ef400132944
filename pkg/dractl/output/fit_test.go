package output

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// fleet has two tables, of which one is long.
func fleet(pools int) Tables {
	totals := &Rows{Title: "Totals:", Columns: []Column{{Name: "driver"}, {Name: "devices"}}}
	totals.Add("gpu.example.com", "80000")
	long := &Rows{Title: "Pools:", Columns: []Column{{Name: "node"}, {Name: "hidden", Wide: true}, {Name: "free"}, {Name: "reason"}}}
	for i := range pools {
		long.Add(fmt.Sprintf("h100-%d", i), strings.Repeat("x", 99), "8", "none of\nthem")
		if i == 1 {
			long.Mark()
		}
	}
	return Tables{totals, long}
}

func printed(t *testing.T, tables Tables, colours bool) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, tables.Print(&out, Table, colours))
	return out.String()
}

func TestFit(t *testing.T) {
	t.Parallel()
	require.Equal(t, `Totals:
DRIVER            DEVICES
gpu.example.com   80000

Pools:
NODE     FREE   REASON
h100-0   8      none of them
`+red+`h100-1   8      none of them`+reset+`
… and 38 more
`, printed(t, fleet(40).Fit(Table, 30, 9), true))
	require.Equal(t, `Totals:
DRIVER        DEVI…
gpu.example.… 80000

Pools:
NODE   FREE REASON
h100-0 8    none o…
… and 39 more
`, printed(t, fleet(40).Fit(Table, 19, 8), false))
	require.Equal(t, "Totals:\nDRIVER            DEVICES\ngpu.example.com   80000\n", printed(t, fleet(40).Fit(Table, 80, 6), false),
		"there is no room for the other table")
	require.NotContains(t, printed(t, fleet(2).Fit(Table, 80, 24), false), "more")
}

// TestFitTail keeps what happened last.
func TestFitTail(t *testing.T) {
	t.Parallel()
	steps := &Rows{Columns: []Column{{Name: "step"}}, Tail: true}
	for _, step := range []string{"created", "allocated", "reserved", "prepared"} {
		steps.Add(step)
	}
	require.Equal(t, "… 2 more before\nSTEP\nreserved\nprepared\n", printed(t, Tables{steps}.Fit(Table, 80, 4), false))
	require.Equal(t, printed(t, Tables{steps}, false), printed(t, Tables{steps}.Fit(Table, 80, 5), false))
	require.Empty(t, printed(t, Tables{}.Fit(Table, 80, 24), false))
}

// TestFits: whatever the tables, and unless the terminal is tiny, they fit, and changing what fits
// leaves them as they are.
func TestFits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var tables Tables
		for range 1 + random.IntN(4) {
			tables = append(tables, anyTable(random))
		}
		width, height := 40+random.IntN(100), 3+random.IntN(60)
		before := printed(t, tables, false)
		text := printed(t, tables.Fit(Table, width, height), false)
		require.Equal(t, before, printed(t, tables, false))
		require.LessOrEqual(t, strings.Count(text, "\n"), height, text)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, " \n")), width, text)
		}
	}
}

func anyTable(random *rand.Rand) *Rows {
	rows := &Rows{Title: "Title:", Tail: random.IntN(4) == 0}
	for i := range 1 + random.IntN(8) {
		rows.Columns = append(rows.Columns, Column{Name: strings.Repeat("n", 3+random.IntN(9)), Wide: i > 0 && random.IntN(3) == 0})
	}
	for range 1 + random.IntN(40) {
		cells := make([]string, len(rows.Columns))
		for i := range cells {
			cells[i] = strings.Repeat("ü", random.IntN(30))
		}
		rows.Add(cells...)
	}
	return rows
}
