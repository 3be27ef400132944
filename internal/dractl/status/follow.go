package status

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
)

// liveWorld is the world as it is now. Where isSelection is set, only the nodes that are watched are shown.
func liveWorld(l *follow.Live, isSelection bool) *world {
	w := &world{Objects: l.Objects()}
	if isSelection {
		w.selectNodes(follow.Current[*corev1.Node](l.Nodes))
	}
	if unseen := l.Unseen("nodes"); unseen != "" {
		w.addUnseen(describeUnseenNodes(unseen))
	}
	return w
}

// followChanges shows what look finds whenever it changes, until the user has seen enough.
func (c *command) followChanges(ctx context.Context, l *follow.Live, look func(context.Context) *view) error {
	progress := c.streams.Progress(reading, 0)
	defer progress.Done()
	return c.newFollower(look).Run(ctx, l, progress.Done)
}

func (c *command) newFollower(look func(context.Context) *view) *follow.Follower {
	var last *view
	f := &follow.Follower{Out: c.streams.Out, ErrOut: c.streams.ErrOut, Separator: "\n", TellNotes: func(*follow.View) { c.tellUser(last) }}
	f.Look = func(ctx context.Context) *follow.View {
		v := look(ctx)
		last = v
		return &follow.View{
			Print: func(out io.Writer, width, height int) error { return c.printView(out, v, width, height) },
			Notes: v.unseen, Nothing: v.nothing,
		}
	}
	switch c.output.Format {
	case output.JSON:
		f.Separator = ""
	case output.YAML:
		f.Separator = "---\n"
	default:
		f.Screen = screen.Of(c.streams.Out)
	}
	return f
}
