package screen

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// terminal does what terminals do with what is written to them. It has two screens.
type terminal struct {
	width, height int
	screens       [2][][]rune
	second        int
	row, column   int
	hidden, cuts  bool
}

func newTerminal(width, height int) *terminal {
	return &terminal{width: width, height: height}
}

var part = regexp.MustCompile(`\x1b\[\??\d*[A-Za-z]|[^\x1b]`)

func (t *terminal) Write(text []byte) (int, error) {
	for _, part := range part.FindAllString(string(text), -1) {
		t.take(part)
	}
	return len(text), nil
}

func (t *terminal) take(part string) {
	lines := &t.screens[t.second]
	switch part {
	case "\x1b[?1049h", "\x1b[?1049l":
		t.second = strings.Count(part, "h")
	case "\x1b[?25l", "\x1b[?25h":
		t.hidden = strings.HasSuffix(part, "l")
	case "\x1b[?7l", "\x1b[?7h":
		t.cuts = strings.HasSuffix(part, "l")
	case home:
		t.row, t.column = 0, 0
	case clearLine:
		t.line()
		(*lines)[t.row] = (*lines)[t.row][:min(t.column, len((*lines)[t.row]))]
	case clearRest:
		t.take(clearLine)
		*lines = (*lines)[:t.row+1]
	case "\r":
		t.column = 0
	case "\n":
		t.row, t.column = t.row+1, 0
	default:
		t.put([]rune(part)[0])
	}
}

// line makes the line of the cursor.
func (t *terminal) line() {
	lines := &t.screens[t.second]
	for len(*lines) <= t.row {
		*lines = append(*lines, nil)
	}
}

func (t *terminal) put(r rune) {
	t.line()
	line := &t.screens[t.second][t.row]
	for len(*line) <= t.column {
		*line = append(*line, ' ')
	}
	(*line)[t.column] = r
	if t.column < t.width-1 {
		t.column++
	}
}

// text is what is on a screen, and no more lines than there are.
func (t *terminal) text(screen int) string {
	var lines []string
	for _, line := range t.screens[screen] {
		lines = append(lines, strings.TrimRight(string(line), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func on(t *terminal) *Screen {
	return New(t, func() (int, int, error) { return t.width, t.height, nil })
}

// TestShow shows one text after the other in the same place, and gives the terminal back.
func TestShow(t *testing.T) {
	t.Parallel()
	terminal := newTerminal(10, 4)
	s := on(terminal)
	require.NoError(t, s.Close())
	require.Empty(t, terminal.screens, "nothing was shown")
	for _, step := range []struct{ text, shown string }{
		{"one\ntwo\nthree\n", "one\ntwo\nthree"},
		{"1\n2\n", "1\n2"},
		{"a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd"},
		{"0123456789\n0123456789abc", "0123456789\n012345678c"},
		{"", ""},
		{"last\n", "last"},
	} {
		require.NoError(t, s.Show(step.text))
		require.Equal(t, step.shown, terminal.text(1))
		require.LessOrEqual(t, len(terminal.screens[1]), 4)
		require.True(t, terminal.hidden && terminal.cuts)
	}
	require.Empty(t, terminal.text(0), "what the user did before is left alone")
	terminal.row, terminal.column = 0, 0
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Equal(t, "last", terminal.text(0))
	require.False(t, terminal.hidden || terminal.cuts)
}

func TestSize(t *testing.T) {
	t.Parallel()
	terminal := newTerminal(120, 50)
	s := on(terminal)
	width, height := s.Size()
	require.Equal(t, []int{120, 50}, []int{width, height})
	s.size = func() (int, int, error) { return 0, 0, errors.New("unknown") }
	width, height = s.Size()
	require.Equal(t, []int{80, 24}, []int{width, height})
}

func TestNoTerminal(t *testing.T) {
	t.Parallel()
	require.Nil(t, Of(&strings.Builder{}))
	require.Nil(t, Of(nil))
}
