package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// laneWaits says of each lane whether it prefers parts that wait: what waits for
// clocks runs beside what computes.
var laneWaits = []bool{false, true, true}

var (
	errNoPrograms  = errors.New("the programs of a cluster could not be made")
	errInterrupted = errors.New("interrupted")
)

// A suite is parts that run in lanes, side by side. One that fails does not keep
// the others from running, except those that need the programs of a cluster when
// these could not be made.
type suite struct {
	out   io.Writer
	total int

	mu sync.Mutex
	// programs is signaled when the programs of a cluster are there, or not to be had.
	programs        *sync.Cond
	pending         []part
	ended           []result
	skipped         []string
	started         int
	withoutPrograms bool
}

// A result is how a part went.
type result struct {
	name string
	times
	err error
}

func runAll(ctx context.Context, out io.Writer, parts []part) error {
	began := time.Now()
	s := &suite{out: &lines{out: out}, total: len(parts), pending: slices.Clone(parts)}
	s.programs = sync.NewCond(&s.mu)
	s.withoutPrograms = slices.ContainsFunc(parts, func(p part) bool { return p.name == programsPart })
	var lanes sync.WaitGroup
	for _, waits := range laneWaits {
		lanes.Go(func() { s.runLane(ctx, waits) })
	}
	lanes.Wait()
	if ctx.Err() != nil {
		printTimes(s.out, s.ended)
		return fmt.Errorf("run the tests: %w", errInterrupted)
	}
	return s.printReport(time.Since(began))
}

// runLane runs parts until none is left.
func (s *suite) runLane(ctx context.Context, waits bool) {
	for ctx.Err() == nil {
		p, number, found := s.takeNextPart(waits)
		if !found {
			return
		}
		s.endPart(p, s.runPart(ctx, fmt.Sprintf("[%d/%d] %s", number, s.total, p.name), p))
	}
}

// takeNextPart takes the next part that can run, and waits while there is none because
// the programs of a cluster are being made.
func (s *suite) takeNextPart(waits bool) (p part, number int, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) > 0 {
		i := slices.IndexFunc(s.pending, func(p part) bool { return s.canRun(p) && p.waits == waits })
		if i < 0 {
			i = slices.IndexFunc(s.pending, s.canRun)
		}
		if i >= 0 {
			p = s.pending[i]
			s.pending = slices.Delete(s.pending, i, i+1)
			s.started++
			return p, s.started, true
		}
		s.programs.Wait()
	}
	return part{}, 0, false
}

func (s *suite) canRun(p part) bool { return !p.needsCluster || !s.withoutPrograms }

func (s *suite) endPart(p part, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, r)
	if p.name != programsPart {
		return
	}
	s.withoutPrograms = false
	if r.err != nil {
		s.pending = slices.DeleteFunc(s.pending, func(p part) bool {
			if p.needsCluster {
				s.skipped = append(s.skipped, p.name)
			}
			return p.needsCluster
		})
	}
	s.programs.Broadcast()
}

// runPart runs a part. The output of one that failed is shown as a whole.
func (s *suite) runPart(ctx context.Context, title string, p part) result {
	command, err := countedCommand(slices.Concat(p.command, p.limit))
	if err != nil {
		return result{name: p.name, err: err}
	}
	notes, err := os.CreateTemp("", "kwok-dra-times-")
	if err != nil {
		return result{name: p.name, err: fmt.Errorf("make a file for times: %w", err)}
	}
	defer func() { _ = errors.Join(notes.Close(), os.Remove(notes.Name())) }()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, &log, &log
	cmd.Env = append(os.Environ(), cluster.TimesEnv+"="+notes.Name())
	if p.showsProgress {
		cmd.Stdout, cmd.Stderr = s.out, s.out
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	began := time.Now()
	step := progress.Start(s.out, title)
	err = cmd.Run()
	step.Finish(err)
	r := result{name: p.name, err: err}
	r.took = time.Since(began)
	if cmd.ProcessState != nil {
		// With all processes that it has waited for, clusters too.
		r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	r.readNotes(notes)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(&log, "%s: %v\n", p.name, err)
		_, _ = s.out.Write(log.Bytes())
	}
	return r
}

// printReport prints what the parts took and which failed.
func (s *suite) printReport(took time.Duration) error {
	printTimes(s.out, s.ended)
	var failed []string
	for _, r := range s.ended {
		if r.err != nil {
			failed = append(failed, r.name)
		}
	}
	took = took.Round(time.Second)
	if len(failed) == 0 {
		fmt.Fprintf(s.out, "All %d parts passed in %s.\n", s.total, took)
		return nil
	}
	if len(s.skipped) > 0 {
		fmt.Fprintf(s.out, "Not run, since %v: %s\n", errNoPrograms, strings.Join(s.skipped, ", "))
	}
	fmt.Fprintf(s.out, "%d of %d parts passed in %s.\n", s.total-len(failed)-len(s.skipped), s.total, took)
	slices.Sort(failed)
	return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
}
