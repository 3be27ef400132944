package screen

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// What terminals do. The second screen leaves what the user did before as it is.
const (
	begin = "\x1b[?1049h\x1b[?25l\x1b[?7l" // second screen, no cursor, long lines are cut
	end   = "\x1b[?7h\x1b[?25h\x1b[?1049l"

	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// Screen is that of a terminal.
type Screen struct {
	out  io.Writer
	size func() (width, height int, err error)
	// shown is what is on the screen.
	shown string
	begun bool
}

// Of is the screen behind a writer, or nil if that is not a terminal.
func Of(out io.Writer) *Screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return newOnTerminal(file)
}

// New is the screen of a terminal of that size.
func New(out io.Writer, size func() (width, height int, err error)) *Screen {
	return &Screen{out: out, size: size}
}

// Size is how many columns and lines the screen has now.
func (s *Screen) Size() (width, height int) {
	width, height, err := s.size()
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Show shows text in place of what is there. It cuts what does not fit.
func (s *Screen) Show(text string) error {
	var drawn strings.Builder
	if !s.begun {
		s.begun = true
		drawn.WriteString(begin)
	}
	_, height := s.Size()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), height)]
	// Each line is cleared before it is written: after a full line the cursor is still on it.
	drawn.WriteString(home + clearLine + strings.Join(lines, "\n"+clearLine))
	if len(lines) < height {
		drawn.WriteString("\n" + clearRest)
	}
	s.shown = strings.Join(lines, "\n")
	_, err := io.WriteString(s.out, drawn.String())
	return err
}

// Close gives the terminal back, with what was shown last.
func (s *Screen) Close() error {
	if !s.begun {
		return nil
	}
	s.begun = false
	_, err := fmt.Fprint(s.out, end, s.shown, "\n")
	return err
}

func newOnTerminal(file *os.File) *Screen {
	return New(file, func() (int, int, error) { return term.GetSize(int(file.Fd())) })
}

// Width is the number of columns that a writer has room for: COLUMNS, or the width of the terminal. 0 means
// no limit, as in a pipe, whose reader wants each row on one line.
func Width(out io.Writer) int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _ := newOnTerminal(file).Size()
	return width
}
