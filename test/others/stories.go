package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/kwok-dra/kwok-dra/test/others/report"
)

// storyLimit bounds a story that says nothing else.
const storyLimit = 3 * time.Minute

// A story is what a user does with a project, and what has to come of it. It leaves nothing
// behind that a later one trips over.
type story struct {
	name string
	run  func(ctx context.Context, w *world) error
	// limit bounds it, if not storyLimit.
	limit time.Duration
}

// tell runs stories one after another. What they say is in the log.
func (r *runner) tell(ctx context.Context, w *world, stories []story, logFile string) ([]report.Spec, error) {
	focus, err := regexp.Compile(r.focus)
	if err != nil {
		return nil, fmt.Errorf("read focus: %w", err)
	}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	var specs []report.Spec
	for _, s := range stories {
		spec := report.Spec{Name: s.name, Result: report.LeftOut}
		if focus.MatchString(s.name) {
			spec = s.tell(ctx, w)
		}
		fmt.Fprintf(log, "%s: %s in %.1f s %s\n", spec.Name, spec.Result, spec.Seconds, spec.Message)
		specs = append(specs, spec)
	}
	return specs, nil
}

func (s story) tell(ctx context.Context, w *world) report.Spec {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.limit, storyLimit))
	defer cancel()
	start := time.Now()
	err := s.run(ctx, w)
	spec := report.Spec{Name: s.name, Result: report.Passed, Seconds: time.Since(start).Round(100 * time.Millisecond).Seconds()}
	if err != nil {
		spec.Result, spec.Message = report.Failed, err.Error()
	}
	return spec
}
