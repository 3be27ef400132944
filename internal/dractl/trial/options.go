package trial

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Options are what a user chooses of a series of stories. What they have when they are added is the default.
type Options struct {
	Streams cli.Streams
	Cluster Cluster
	Output  output.Flag
	// First is the seed of the first story, and Seeds is how many there are.
	First int64
	Seeds int
	// Only is a regular expression for the statements that count.
	Only string
	// IsList asks for the statements, and for no story.
	IsList bool
	Times
}

// Times are the limits of a check.
type Times struct {
	// Settle is how long a violation at rest must last.
	Settle time.Duration
	// Timeout is the time that a cluster has to come to rest.
	Timeout time.Duration
	// Shrink is the time to shrink a story.
	Shrink time.Duration
}

// AddTo adds the flags. settle says what --settle is.
func (o *Options) AddTo(command *cobra.Command, settle string) {
	o.Output.AddTo(command, output.Table, output.JSON, output.JUnit)
	o.Cluster.AddTo(command)
	flags := command.Flags()
	flags.IntVar(&o.Seeds, "seeds", o.Seeds, "how many stories to play")
	flags.Int64Var(&o.First, "seed", 1, "seed of the first story; each other one has the next number")
	flags.BoolVar(&o.IsList, "statements", false, "list the statements, and play nothing")
	flags.StringVar(&o.Only, "only", "", "regular expression for the ids of statements that count; default: all")
	flags.DurationVar(&o.Settle, "settle", o.Settle, settle)
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "time for the cluster to come to rest")
	flags.DurationVar(&o.Shrink, "shrink", o.Shrink, "time to shrink a story for each violated statement; 0 leaves it as it is")
}

// Run is the series of stories that the user asks for.
func (o *Options) Run(shrinker *Shrinker) *Run {
	return &Run{Shrinker: *shrinker, Streams: o.Streams, First: o.First, Seeds: o.Seeds}
}

// Player applies the steps of stories to a cluster. A story.Player is one.
type Player interface {
	Play(ctx context.Context, s *story.Story, rest func(context.Context) error) error
	Clear(ctx context.Context, s *story.Story) error
}

// SelectNew returns the violations of some statements that are not known yet, each once.
func SelectNew(known, found []drajudge.Violation, statements []drajudge.Statement) []drajudge.Violation {
	var selected []drajudge.Violation
	for _, v := range found {
		isSame := func(other drajudge.Violation) bool {
			return other.Statement.ID == v.Statement.ID && slices.Equal(other.Objects, v.Objects)
		}
		counts := slices.ContainsFunc(statements, func(s drajudge.Statement) bool { return s.ID == v.Statement.ID })
		if counts && !slices.ContainsFunc(known, isSame) && !slices.ContainsFunc(selected, isSame) {
			selected = append(selected, v)
		}
	}
	return selected
}
