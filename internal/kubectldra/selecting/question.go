package selecting

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// Question is a command that asks for devices.
type Question struct {
	Flags

	// IsInventory says that the answer needs an inventory alone, and lists no single devices.
	IsInventory bool

	frame *printing.Frame
	watch bool
}

// NewQuestion makes a question, and adds its flags to a command.
func NewQuestion(command *cobra.Command, reach *reading.Flags, streams genericiooptions.IOStreams) *Question {
	q := &Question{frame: printing.NewFrame(command, reach, streams)}
	q.AddTo(command, reach)
	command.Flags().BoolVarP(&q.watch, "watch", "w", false, "Show the answer again whenever it changes, on a terminal in place.")
	return q
}

// Answer is what a command says of a cluster.
type Answer struct {
	// Headline is the answer in one line.
	Headline string
	Tables   output.Tables
	// Next names the command that says more, if any.
	Next string
	// Objects are the answer for programs.
	Objects []any
}

// Ask makes a command read the cluster and print the answer, or follow it.
func (q *Question) Ask(command *cobra.Command, answer func(c *Cluster, names []string) *Answer) {
	var names []string
	q.frame.Run(command, func(arguments []string) error {
		names = arguments
		return q.Parse()
	}, func(ctx context.Context) error {
		reader := q.frame.Reader
		progress := cli.Streams{ErrOut: q.frame.ErrOut}.Progress("reading the cluster", 0)
		defer progress.Done()
		c, err := ReadCluster(ctx, reader, q.frame.Namespace, q.IsInventory)
		progress.Done()
		if err != nil {
			return err
		}
		if q.watch {
			reading.ResetMemoryBudget()
			return q.follow(ctx, Watch(reader, q.frame.Namespace), func(c *Cluster) *Answer { return answer(c, names) }, reader.Unseen())
		}
		if err := q.printAnswer(q.frame.Out, answer(c, names), q.frame.Layout(q.frame.Out)); err != nil {
			return err
		}
		q.frame.TellUnseen()
		return nil
	})
}

// follow shows the answer whenever it changes.
func (q *Question) follow(ctx context.Context, l *follow.Live, answer func(*Cluster) *Answer, unseen []reading.Unseen) error {
	f := &follow.Follower{Out: q.frame.Out, ErrOut: q.frame.ErrOut, TellNotes: func(*follow.View) {
		printing.Unseen(q.frame.ErrOut, unseen)
		unseen = nil
	}}
	var notes strings.Builder
	printing.Unseen(&notes, unseen)
	if q.frame.IsForPeople() {
		f.Screen, f.Separator = screen.Of(q.frame.Out), "\n"
	}
	f.Look = func(context.Context) *follow.View {
		current := answer(Of(l))
		return &follow.View{Notes: strings.TrimSpace(notes.String()), Print: func(out io.Writer, width, height int) error {
			layout := q.frame.Layout(q.frame.Out)
			layout.Width, layout.Height = width, height
			return q.printAnswer(out, current, layout)
		}}
	}
	return f.Run(ctx, l, func() {})
}

func (q *Question) printAnswer(out io.Writer, a *Answer, layout output.Layout) error {
	if !q.frame.IsForPeople() {
		return q.frame.Print(out, nil, a.Objects)
	}
	if layout.NoHeaders {
		return a.Tables.Print(out, layout)
	}
	head, foot := a.Headline+"\n", ""
	if len(a.Tables) > 0 {
		head += "\n"
	}
	if a.Next != "" {
		foot = "\n" + a.Next + "\n"
	}
	if layout.Height > 0 {
		layout.Height = max(1, layout.Height-strings.Count(head+foot, "\n"))
	}
	if _, err := fmt.Fprint(out, head); err != nil {
		return err
	}
	if err := a.Tables.Print(out, layout); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, foot)
	return err
}
