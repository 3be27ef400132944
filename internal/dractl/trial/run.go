package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Run is a series of stories.
type Run struct {
	Shrinker

	Streams cli.Streams
	// First is the seed of the first story, and Seeds is how many there are.
	First int64
	Seeds int
}

// ReportStories plays the stories, prints the report, and returns the error with which the command ends. If it is
// interrupted, the report is that of the stories which were played, and of what the last one has violated by then.
func (r *Run) ReportStories(ctx context.Context, report *Report, printReport func() error) error {
	interrupted := r.playStories(ctx, report)
	if interrupted != nil && report.Stories == 0 {
		return interrupted
	}
	if err := printReport(); err != nil || interrupted != nil {
		return errors.Join(interrupted, err)
	}
	return report.conclude()
}

// playStories plays the stories, and shrinks those that violate a statement for the first time. Those that could not be
// played to the end are problems of the report.
func (r *Run) playStories(ctx context.Context, report *Report) error {
	for seed := r.First; seed < r.First+int64(r.Seeds); seed++ {
		started := time.Now()
		progress := r.Streams.Progress(fmt.Sprintf("playing story %d", seed), 0)
		violations, err := r.Play(ctx, seed, nil)
		progress.Done()
		if ctx.Err() != nil {
			if len(violations) > 0 {
				report.addStory(seed, violations, time.Since(started))
			}
			return errors.Join(fmt.Errorf("play story %d: %w", seed, ctx.Err()), leftoverOf(err))
		}
		if err != nil {
			report.Problems = append(report.Problems, fmt.Sprintf("story %d: %v", seed, err))
			r.Streams.Tell("story %d could not be played to the end: %v\n", seed, err)
		}
		r.Streams.Tell("story %d: %s (%.1f s)\n", seed, describeViolations(violations), time.Since(started).Seconds())
		for _, result := range report.addStory(seed, violations, time.Since(started)) {
			if err := r.shrinkStory(ctx, result); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftoverOf returns the part of an error that says what a story has left in the cluster, or nil.
func leftoverOf(err error) error {
	if left, isLeft := errors.AsType[*story.LeftoverError](err); isLeft {
		return left
	}
	return nil
}

// conclude returns the error with which a command ends that has played all stories.
func (r *Report) conclude() error {
	if len(r.Problems) > 0 {
		return fmt.Errorf("%d of %d stories could not be played to the end: %s", len(r.Problems), r.Stories, r.Problems[0])
	}
	if r.countOutcome(output.OutcomeFailed) > 0 {
		return cli.ErrNegative
	}
	return nil
}

// describeViolations names the statements that a story violates.
func describeViolations(violations []drajudge.Violation) string {
	if len(violations) == 0 {
		return "ok"
	}
	var ids []string
	for _, v := range violations {
		ids = append(ids, v.Statement.ID)
	}
	return "violates " + cli.FirstFew(distinct(ids), 3)
}

// shrinkStory finds the smallest story that violates a statement.
func (r *Run) shrinkStory(ctx context.Context, result *Result) error {
	progress := r.Streams.Progress(fmt.Sprintf("shrinking story %d, which violates %s", result.Seeds[0], result.ID), 0)
	evidence, err := r.Shrink(ctx, result.Seeds[0], result.ID, result.Seen)
	progress.Done()
	result.Evidence = evidence
	if err != nil {
		return fmt.Errorf("shrink story %d: %w", result.Seeds[0], err)
	}
	r.Streams.Tell("  %s: %s\n", result.ID, evidence.describe())
	return nil
}
