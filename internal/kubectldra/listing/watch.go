package listing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// watch shows the answer, and then each change, until the user ends it.
func (l *lister) watch(ctx context.Context) error {
	reading.ResetMemoryBudget()
	live := follow.NewUsage(l.Reader.Client(), l.question.Namespace, l.podSelector())
	f := &follower{lister: l}
	if l.IsForPeople() {
		f.screen = screen.Of(l.Out)
	}
	if f.screen == nil {
		live.ErrOut = l.ErrOut
	}
	err := live.Run(ctx, func() error { return f.update(live) })
	if f.screen == nil {
		return err
	}
	return errors.Join(err, f.screen.Close())
}

// objectsOf are the objects as they are now. What the user may not read is left out.
func (l *lister) objectsOf(live *follow.Live) usage.Objects {
	current := live.Objects()
	objects := usage.Objects{Pods: current.Pods, Claims: current.Claims, Slices: current.Slices, Failures: current.Failures, Rules: current.Rules}
	if current.Unseen != "" {
		l.noteForbidden("devicetaintrules", "")
	}
	for resource, namespace := range map[string]string{
		"pods": l.question.Namespace, "resourceclaims": l.question.Namespace, "events": l.question.Namespace, "resourceslices": "",
	} {
		if live.Unseen(resource) != "" {
			l.noteForbidden(resource, namespace)
			noteUnseen(&objects, resource)
		}
	}
	return objects
}

func (l *lister) noteForbidden(resource, namespace string) {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	_ = l.Reader.NoteUnseen("watch", resource, namespace, err) // it returns other errors only
}

// follower shows an answer, and then what changes: on a terminal all of it anew, else the rows that changed.
type follower struct {
	*lister
	// screen is nil if the output is for programs, or is no terminal.
	screen *screen.Screen
	// seen is the number of changes that the last answer has.
	seen uint64
	// shown are the rows of the last answer, by their keys.
	shown map[string]Row
}

// update shows the answer if there are other changes than it has. On a terminal it shows ages anew as well.
func (f *follower) update(live *follow.Live) error {
	changes := live.Changes()
	if f.shown != nil && changes == f.seen && f.screen == nil {
		return nil
	}
	f.seen = changes
	current := f.objectsOf(live)
	if f.isBlind(current) {
		return f.Reader.ExplainUnseen("resourceclaims")
	}
	answer := f.chooseRows(current)
	if f.screen != nil {
		f.shown = map[string]Row{}
		return f.redraw(answer, live.Stale())
	}
	isFirst := f.shown == nil
	rows := f.changedRows(answer)
	if isFirst {
		if len(rows) == 0 && f.IsForPeople() {
			_, _ = fmt.Fprintln(f.ErrOut, answer.Nothing)
		}
		f.TellUnseen()
	} else {
		answer.Title = ""
	}
	if len(rows) == 0 {
		return nil
	}
	return f.printRows(answer, rows)
}

// changedRows returns the rows that differ from those of the last answer but for their ages, and those that have
// gone, and remembers the answer.
func (f *follower) changedRows(answer *Answer) []Row {
	before := f.shown
	f.shown = map[string]Row{}
	var changed []Row
	for _, row := range answer.Rows {
		f.shown[row.Key] = row
		old, known := before[row.Key]
		hasChanged := !known
		for i, column := range answer.Columns {
			hasChanged = hasChanged || column.Name != "since" && row.Cells[i] != old.Cells[i]
		}
		if hasChanged {
			changed = append(changed, row)
		}
	}
	var released []Row
	for key, row := range before {
		if _, stays := f.shown[key]; !stays {
			released = append(released, row.Released())
		}
	}
	slices.SortFunc(released, func(a, b Row) int { return strings.Compare(a.Key, b.Key) })
	return append(changed, released...)
}

// redraw shows all of the answer. Stale says that there are no updates, if there are none.
func (f *follower) redraw(answer *Answer, stale string) error {
	layout := f.Layout(f.Out)
	width, height := f.screen.Size()
	var note strings.Builder
	if stale != "" {
		note.WriteString(stale + "\n")
	}
	if len(answer.Rows) == 0 {
		note.WriteString(answer.Nothing + "\n")
	}
	printing.Unseen(&note, f.Reader.Unseen())
	layout.Width, layout.Height = width, height-strings.Count(note.String(), "\n")
	var text strings.Builder
	if len(answer.Rows) > 0 {
		if err := answer.Print(&text, answer.Rows, layout); err != nil {
			return err
		}
	}
	return f.screen.Show(text.String() + note.String())
}
