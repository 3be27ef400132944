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

func printed(t *testing.T, tables Tables, l Layout) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, tables.Print(&out, l))
	return out.String()
}

// TestHeight shows as much of each table as a terminal has room for.
func TestHeight(t *testing.T) {
	t.Parallel()
	require.Equal(t, `Totals:
DRIVER            DEVICES
gpu.example.com   80000

Pools:
NODE      FREE   REASON
h100-0    8      none of them
`+red+`h100-1    8      none of them`+reset+`
… and 38 more
`, printed(t, fleet(40), Layout{Width: 30, Height: 9, Colours: true}))
	require.Equal(t, "Totals:\nDRIVER            DEVICES\ngpu.example.com   80000\n", printed(t, fleet(40), Layout{Width: 80, Height: 6}),
		"there is no room for the other table")
	require.NotContains(t, printed(t, fleet(2), Layout{Width: 80, Height: 24}), "more")
	require.NotContains(t, printed(t, fleet(99), Layout{}), "more")
	require.Equal(t, "gpu.example.com   80000\n\n", strings.SplitAfterN(printed(t, fleet(40), Layout{NoHeaders: true}), "h100", 2)[0][:25])
}

// TestHeightTail keeps what happened last.
func TestHeightTail(t *testing.T) {
	t.Parallel()
	steps := &Rows{Columns: []Column{{Name: "step"}}, Tail: true}
	for _, step := range []string{"created", "allocated", "reserved", "prepared"} {
		steps.Add(step)
	}
	require.Equal(t, "… 2 more before\nSTEP\nreserved\nprepared\n", printed(t, Tables{steps}, Layout{Width: 80, Height: 4}))
	require.Equal(t, printed(t, Tables{steps}, Layout{}), printed(t, Tables{steps}, Layout{Width: 80, Height: 5}))
	require.Empty(t, printed(t, Tables{}, Layout{Width: 80, Height: 24}))
}

// TestWidth: what does not fit becomes narrower step by step, and names stay whole.
func TestWidth(t *testing.T) {
	t.Parallel()
	rows := &Rows{Columns: []Column{{Name: "device"}, {Name: "state"}, {Name: "uuid", Spare: 2}, {Name: "claim", Spare: 1}, {Name: "reason"}}}
	rows.Add("gpu-0", "failing", "GPU-11111111-2222", "default/train", "the driver is not registered")
	for _, test := range []struct {
		width int
		want  string
	}{
		{0, `DEVICE   STATE     UUID                CLAIM           REASON
gpu-0    failing   GPU-11111111-2222   default/train   the driver is not registered
`},
		{80, `DEVICE  STATE    UUID               CLAIM          REASON
gpu-0   failing  GPU-11111111-2222  default/train  the driver is not registered
`},
		{70, `DEVICE  STATE    CLAIM          REASON
gpu-0   failing  default/train  the driver is not registered
`},
		{30, `DEVICE  STATE    REASON
gpu-0   failing  the driver is
                 not
                 registered
`},
		{20, `DEVICE  STATE
  REASON
gpu-0   failing
  the driver is not
  registered
`},
	} {
		require.Equal(t, test.want, printed(t, Tables{rows}, Layout{Width: test.width}), "%d columns", test.width)
	}
	for _, whole := range []string{"GPU-11111111-2222", "default/train"} {
		require.Contains(t, printed(t, Tables{rows}, Layout{Format: Wide, Width: 30}), whole, "the wide table has all")
	}
}

// TestFits: whatever the tables, and unless the terminal is tiny, they fit, no name is cut, and
// printing what fits leaves the tables as they are.
func TestFits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var tables Tables
		for range 1 + random.IntN(4) {
			tables = append(tables, anyTable(random))
		}
		width, height := 40+random.IntN(100), 12+random.IntN(60)
		before := printed(t, tables, Layout{})
		text := printed(t, tables, Layout{Width: width, Height: height})
		require.Equal(t, before, printed(t, tables, Layout{}))
		require.LessOrEqual(t, strings.Count(text, "\n"), height, text)
		whole := printed(t, tables, Layout{Format: Wide, Width: width})
		for line := range strings.Lines(text + whole) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, " \n")), width, line)
		}
		for _, rows := range tables {
			for _, cells := range rows.Cells {
				for word := range strings.FieldsSeq(strings.Join(cells, " ")) {
					require.Contains(t, whole, word)
				}
			}
		}
	}
}

func anyTable(random *rand.Rand) *Rows {
	rows := &Rows{Title: "Title:", Tail: random.IntN(4) == 0}
	for i := range 1 + random.IntN(8) {
		rows.Columns = append(rows.Columns, Column{Name: strings.Repeat("n", 3+random.IntN(9)), Wide: i > 0 && random.IntN(3) == 0, Spare: random.IntN(3)})
	}
	for range 1 + random.IntN(40) {
		cells := make([]string, len(rows.Columns))
		for i := range cells {
			cells[i] = strings.Repeat("ü", random.IntN(30)) + strings.Repeat(" word", random.IntN(3))
		}
		rows.Add(cells...)
	}
	return rows
}
