package follow

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
)

// Interval is how often an answer is shown at most.
const Interval = time.Second

// View is an answer at one time.
type View struct {
	// Print prints it in so many columns and lines, of which 0 is without limit.
	Print func(out io.Writer, width, height int) error
	// Notes are for the user, and not part of the answer. Nothing says why the answer is empty.
	Notes, Nothing string
}

// Follower shows a view, and the next one when something has changed.
type Follower struct {
	// Without a screen, Run reports failing updates to ErrOut.
	Out, ErrOut io.Writer
	// Screen is nil if the output is for programs, or is no terminal.
	Screen *screen.Screen
	// Look finds what there is to show.
	Look func(context.Context) *View
	// Separator is between two views where there is no screen, and TellNotes tells the user the notes there.
	Separator string
	TellNotes func(*View)

	// size is that of the screen with the view, and stale what it says of updates that fail.
	size  [2]int
	stale string
	view  *View
	// seen is the number of changes that the view has.
	seen uint64
	// shown is the last view where there is no screen, and hasAppended says that something was
	// written before.
	shown       string
	hasAppended bool
}

// Run shows what there is whenever it changes, until the user has seen enough. It calls ready before it shows
// something for the first time.
func (f *Follower) Run(ctx context.Context, l *Live, ready func()) error {
	if f.Screen == nil {
		l.ErrOut = f.ErrOut
	}
	err := l.Run(ctx, func() error {
		ready()
		return f.Update(ctx, l.Changes(), l.Stale())
	})
	return errors.Join(err, f.Close())
}

// Update shows the view again if there are other changes than it has, or if the terminal has
// another size. Stale says that there are no updates, if there are none.
func (f *Follower) Update(ctx context.Context, changes uint64, stale string) error {
	same := f.view != nil && changes == f.seen
	if !same {
		f.view, f.seen = f.Look(ctx), changes
	}
	if f.Screen == nil {
		if same {
			return nil
		}
		return f.appendView()
	}
	width, height := f.Screen.Size()
	if size := [2]int{width, height}; size != f.size || stale != f.stale {
		f.size, f.stale, same = size, stale, false
	}
	if same {
		return nil
	}
	notes := slices.DeleteFunc([]string{stale, f.view.Notes, f.view.Nothing}, func(note string) bool { return note == "" })
	note := strings.Join(notes, "\n")
	if note != "" {
		height -= 1 + strings.Count(note, "\n")
	}
	var text strings.Builder
	if err := f.view.Print(&text, width, height); err != nil {
		return err
	}
	return f.Screen.Show(text.String() + note)
}

// appendView shows the view below the one before, if it is another one.
func (f *Follower) appendView() error {
	var text strings.Builder
	if err := f.view.Print(&text, screen.Width(f.Out), 0); err != nil {
		return err
	}
	next := text.String() + f.view.Nothing
	if next == f.shown {
		return nil
	}
	f.shown = next
	if text.Len() > 0 {
		separator := ""
		if f.hasAppended {
			separator = f.Separator
		}
		if _, err := io.WriteString(f.Out, separator+text.String()); err != nil {
			return err
		}
		f.hasAppended = true
	}
	f.TellNotes(f.view)
	return nil
}

// Close gives the terminal back.
func (f *Follower) Close() error {
	if f.Screen == nil {
		return nil
	}
	return f.Screen.Close()
}
