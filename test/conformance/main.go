package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// options are the flags.
type options struct {
	only     string
	pageOnly bool
	player
}

func main() {
	o := options{}
	flag.StringVar(&o.only, "only", "", "try the schedulers and autoscalers whose names match this regular expression, and keep the results of the others")
	flag.IntVar(&o.seeds, "seeds", 100, "how many stories each scheduler gets")
	flag.IntVar(&o.autoscalerSeeds, "autoscaler-seeds", 10, "how many stories each autoscaler gets")
	flag.DurationVar(&o.shrink, "shrink", 10*time.Minute, "time to shrink a story for each violated statement")
	flag.StringVar(&o.sources, "src", "", "folder with the checkouts of projects that publish no module")
	flag.BoolVar(&o.pageOnly, "page", false, "play nothing: write the page again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, sidecar.Root())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run plays the stories and writes the page.
func (o *options) run(ctx context.Context, root string) error {
	matches, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	s := &store{folder: filepath.Join(root, "docs", "conformance")}
	if err := s.readResults(); err != nil {
		return err
	}
	var problem error
	if !o.pageOnly {
		problem = o.tryAll(ctx, s, root, matches)
	}
	text, err := s.page()
	if err != nil {
		return errors.Join(problem, err)
	}
	return errors.Join(problem, os.WriteFile(filepath.Join(root, "docs", "conformance.md"), []byte(text), 0o644))
}

// tryAll plays stories with one subject after the other. One that cannot be tried keeps the results that it has, and does not
// keep others from being tried.
func (o *options) tryAll(ctx context.Context, s *store, root string, matches *regexp.Regexp) error {
	if err := o.build(root); err != nil {
		return err
	}
	var problems []error
	for i := range subjects {
		if !matches.MatchString(subjects[i].name) {
			continue
		}
		if err := o.trySubject(ctx, s, &subjects[i]); err != nil {
			problems = append(problems, fmt.Errorf("try %s: %w", subjects[i].name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(problems...)
}
