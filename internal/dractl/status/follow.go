package status

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
)

// interval is how often a view is shown at most.
const interval = time.Second

// followChanges shows what look finds whenever it changes, until the user has seen enough.
func (c *command) followChanges(ctx context.Context, l *live, look func(context.Context) *view) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer l.running.Wait()
	defer cancel(nil)
	l.startInformers(ctx, cancel)
	progress := c.streams.Progress(reading, 0)
	defer progress.Done()
	f := c.newFollower(look)
	defer func() { err = errors.Join(err, f.closeScreen()) }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if l.hasSynced() {
			progress.Done()
			changes := l.changes.Load()
			if l.rules != nil {
				changes += l.rules.Changes()
			}
			if err := f.updateView(ctx, changes); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil // the user ends it
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// follower shows a view, and the next one when something has changed.
type follower struct {
	*command
	look func(context.Context) *view
	// screen is nil if the output is for programs, or is no terminal.
	screen        *screen.Screen
	width, height int

	view *view
	// seen is the number of changes that the view has.
	seen uint64
	// shown is the last view where there is no screen, and appended says that something was
	// written before.
	shown    string
	appended bool
}

func (c *command) newFollower(look func(context.Context) *view) *follower {
	f := &follower{command: c, look: look}
	if !c.output.Format.IsValue() {
		f.screen = screen.Of(c.streams.Out)
	}
	return f
}

// updateView shows the view again if there are other changes than it has, or if the terminal has
// another size.
func (f *follower) updateView(ctx context.Context, changes uint64) error {
	same := f.view != nil && changes == f.seen
	if !same {
		f.view, f.seen = f.look(ctx), changes
	}
	if f.screen == nil {
		if same {
			return nil
		}
		return f.appendView()
	}
	if width, height := f.screen.Size(); width != f.width || height != f.height {
		f.width, f.height, same = width, height, false
	}
	if same {
		return nil
	}
	height := f.height
	note := strings.Trim(f.view.unseen+"\n"+f.view.nothing, "\n")
	if note != "" {
		height -= 1 + strings.Count(note, "\n")
	}
	var text strings.Builder
	if err := f.printView(&text, f.view, f.width, height); err != nil {
		return err
	}
	return f.screen.Show(text.String() + note)
}

// appendView shows the view below the one before, if it is another one.
func (f *follower) appendView() error {
	var text strings.Builder
	if err := f.printView(&text, f.view, screen.Width(f.streams.Out), 0); err != nil {
		return err
	}
	next := text.String() + f.view.nothing
	if next == f.shown {
		return nil
	}
	f.shown = next
	if text.Len() > 0 {
		separator := "\n"
		switch {
		case !f.appended || f.output.Format == output.JSON:
			separator = ""
		case f.output.Format == output.YAML:
			separator = "---\n"
		}
		if _, err := io.WriteString(f.streams.Out, separator+text.String()); err != nil {
			return err
		}
		f.appended = true
	}
	f.tellUser(f.view)
	return nil
}

func (f *follower) closeScreen() error {
	if f.screen == nil {
		return nil
	}
	return f.screen.Close()
}
