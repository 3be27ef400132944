package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// envelope is a run.
type envelope struct {
	subjects []subject
	rounds   int
	progress io.Writer

	chosen  []dimension
	skipped []string
	worlds  []*world
	points  map[shape]point
}

// choose chooses the dimensions that match, and which all subjects have.
func (e *envelope) choose(only *regexp.Regexp) error {
	var names []string
	for _, d := range dimensions {
		names = append(names, d.name)
		if !only.MatchString(d.name) {
			continue
		}
		lacking := ""
		for _, subject := range e.subjects {
			if semver.Compare(subject.Version, fmt.Sprintf("v1.%d.0", d.since)) < 0 {
				lacking = subject.name()
			}
		}
		if lacking == "" {
			e.chosen = append(e.chosen, d)
		} else {
			e.skipped = append(e.skipped, fmt.Sprintf("%s is left out: it needs Kubernetes 1.%d, and %s is older", d.name, d.since, lacking))
		}
	}
	if len(e.chosen) == 0 {
		return fmt.Errorf("choose dimensions: none of %s matches %q", strings.Join(names, ", "), only)
	}
	return nil
}

// measure returns what it has measured also with an error.
func (e *envelope) measure(ctx context.Context) (r *report, err error) {
	started := time.Now()
	r = &report{Date: started.UTC().Format(time.DateOnly), Rounds: e.rounds, Base: baseShape(), Skipped: e.skipped}
	defer func() {
		for _, w := range e.worlds {
			err = errors.Join(err, w.cluster.Stop())
		}
		r.Seconds = time.Since(started).Seconds()
		r.conclude()
	}()
	// First of all: a build takes minutes, in which no cluster need run.
	programs := make([]map[string]string, len(e.subjects))
	for i, subject := range e.subjects {
		if programs[i], err = subject.patchedPrograms(ctx); err != nil {
			return r, err
		}
	}
	for i, subject := range e.subjects {
		w, err := startWorld(ctx, subject, programs[i])
		if err != nil {
			return r, err
		}
		e.worlds = append(e.worlds, w)
		r.Subjects = append(r.Subjects, subject.name())
		r.Machine = fleet.Machine(w.cluster)
	}
	e.points = map[shape]point{}
	count := 0
	for _, d := range e.chosen {
		count += len(d.points)
	}
	for _, d := range e.chosen {
		for _, value := range d.points {
			fmt.Fprintf(e.progress, "[%d/%d, %s] %d %s\n", len(r.Points)+1, count, time.Since(started).Round(time.Second), value, d.unit)
			p, err := e.measurePoint(ctx, d.shapeAt(value))
			if err != nil {
				return r, fmt.Errorf("measure %d %s: %w", value, d.unit, err)
			}
			p.Dimension, p.Value = d.name, value
			r.Points = append(r.Points, p)
		}
	}
	return r, nil
}

// measurePoint measures a shape, once in a run.
func (e *envelope) measurePoint(ctx context.Context, s shape) (point, error) {
	if p, isKnown := e.points[s]; isKnown {
		return p, nil
	}
	p := point{Shape: s, Paces: map[string][]pace{}}
	for _, w := range e.worlds {
		if err := w.setShape(ctx, s); err != nil {
			return p, fmt.Errorf("make the fleet on %s: %w", w.name(), err)
		}
		// The first round fills caches, and does not count.
		if _, _, err := w.runRound(ctx); err != nil {
			return p, fmt.Errorf("round on %s: %w", w.name(), err)
		}
	}
	var err error
	if p.Samples, err = e.runRounds(ctx, &p); err != nil {
		return p, err
	}
	if len(e.worlds) == 2 && p.hasRegression(e.worlds[0].name(), e.worlds[1].name()) {
		fmt.Fprintln(e.progress, "  it looks like a regression; measuring the point again")
		if p.Again, err = e.runRounds(ctx, &p); err != nil {
			return p, err
		}
	}
	e.points[s] = p
	return p, nil
}

// runRounds has all subjects take turns.
func (e *envelope) runRounds(ctx context.Context, p *point) (map[string][]sample, error) {
	samples := map[string][]sample{}
	for round := range e.rounds {
		for _, w := range pairs.Order(round, e.worlds) {
			s, pace, err := w.runRound(ctx)
			if err != nil {
				return nil, fmt.Errorf("round %d on %s: %w", round+1, w.name(), err)
			}
			samples[w.name()] = append(samples[w.name()], s)
			p.Paces[w.name()] = append(p.Paces[w.name()], pace)
		}
	}
	for _, w := range e.worlds {
		var line strings.Builder
		for _, m := range metrics[:3] {
			fmt.Fprintf(&line, "  %s %.4g %s", m.title, pairs.Of(valuesOf(samples[w.name()], m)).Median, m.unit)
		}
		fmt.Fprintf(e.progress, "  %s:%s\n", w.name(), line.String())
	}
	for _, warning := range p.listWarnings() {
		fmt.Fprintln(e.progress, "  warning:", warning)
	}
	return samples, nil
}
