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
	// programs are the patched programs of each subject, by its name.
	programs map[string]map[string]string
	points   map[shape]point
	// machine is on what the clusters ran, and starts is how many there were.
	machine string
	starts  int
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
		r.Machine, r.Seconds = e.machine, time.Since(started).Seconds()
		r.conclude()
	}()
	// First of all: a build takes minutes, in which no cluster need run.
	e.programs = map[string]map[string]string{}
	for _, subject := range e.subjects {
		r.Subjects = append(r.Subjects, subject.name())
		if e.programs[subject.name()], err = subject.patchedPrograms(ctx); err != nil {
			return r, err
		}
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
	var err error
	if p.Samples, err = e.tryRounds(ctx, &p); err != nil {
		return p, err
	}
	if len(e.subjects) == 2 && p.hasRegression(e.subjects[0].name(), e.subjects[1].name()) {
		fmt.Fprintln(e.progress, "  it looks like a regression; measuring the point again")
		if p.Again, err = e.tryRounds(ctx, &p); err != nil {
			return p, err
		}
	}
	e.points[s] = p
	return p, nil
}

// tryRounds runs rounds, and makes them again if they fail: half an hour is not to be lost to a fault of a control plane that
// shows now and then.
func (e *envelope) tryRounds(ctx context.Context, p *point) (map[string][]sample, error) {
	samples, err := e.runRounds(ctx, p)
	if err == nil || ctx.Err() != nil {
		return samples, err
	}
	fmt.Fprintf(e.progress, "  %v; measuring the point again\n", err)
	p.Failed = append(p.Failed, err.Error())
	return e.runRounds(ctx, p)
}

// runRounds has all subjects take turns, on control planes that have done nothing before: an old one has a larger heap,
// and may be slower or faster by half for minutes.
func (e *envelope) runRounds(ctx context.Context, p *point) (samples map[string][]sample, err error) {
	var worlds []*world
	defer func() { err = errors.Join(err, e.stopWorlds(worlds, err != nil && ctx.Err() == nil)) }()
	for _, subject := range e.subjects {
		w, err := startWorld(ctx, subject, e.programs[subject.name()], e.startOutput())
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, w)
		e.machine = fleet.Machine(w.cluster)
		if err := w.createFleet(ctx, p.Shape); err != nil {
			return nil, fmt.Errorf("make the fleet on %s: %w", w.name(), err)
		}
		// The first round fills caches, and does not count.
		if _, _, err := w.runRound(ctx); err != nil {
			return nil, fmt.Errorf("round on %s: %w", w.name(), err)
		}
	}
	samples = map[string][]sample{}
	paces := map[string][]pace{} // those of rounds that fail do not count
	for round := range e.rounds {
		for _, w := range pairs.Order(round, worlds) {
			s, pace, err := w.runRound(ctx)
			if err != nil {
				return nil, fmt.Errorf("round %d on %s: %w", round+1, w.name(), err)
			}
			samples[w.name()] = append(samples[w.name()], s)
			paces[w.name()] = append(paces[w.name()], pace)
		}
	}
	for _, w := range worlds {
		p.Paces[w.name()] = append(p.Paces[w.name()], paces[w.name()]...)
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

// stopWorlds stops the clusters. Of rounds that have failed it keeps the logs, and tells where.
func (e *envelope) stopWorlds(worlds []*world, hasFailed bool) (err error) {
	for _, w := range worlds {
		if hasFailed {
			logs, copyErr := w.cluster.CopyLogs("envelope")
			fmt.Fprintf(e.progress, "  the logs of %s are in %s\n", w.name(), logs)
			err = errors.Join(err, copyErr)
		}
		err = errors.Join(err, w.stopCluster())
	}
	return err
}

// startOutput is where the start of a cluster is told. The first one of each subject builds what is missing.
func (e *envelope) startOutput() io.Writer {
	if e.starts++; e.starts > len(e.subjects) {
		return io.Discard
	}
	return e.progress
}
