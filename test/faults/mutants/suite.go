package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// suite is the fault suite on a copy of the checkout.
type suite struct {
	checkout               checkout
	seeds, clusters, edits uint
	within                 time.Duration
	logs                   string
}

// outcome is what became of a mutant.
type outcome struct {
	mutant mutant
	// verdict is that of the suite, if it has run.
	verdict verdict
	took    time.Duration
	// err is why nothing is proven.
	err error
}

// program is the compiled suite. It is the same for all mutants, which are in the
// sidecar that it builds.
const program = "bin/faults.test"

func (s *suite) compile(ctx context.Context) error {
	if out, err := s.checkout.commandIn(ctx, "test", "go", "test", "-c", "-o", "../"+program, "./faults").CombinedOutput(); err != nil {
		return fmt.Errorf("compile the fault suite: %w\n%s", err, out)
	}
	return nil
}

// prove has the unit test and the suite find a fault, and sees that the seed that
// found it passes without the fault.
func (s *suite) prove(ctx context.Context, m mutant, step *progress.Step) outcome {
	o := outcome{mutant: m}
	if o.err = s.checkout.putFault(ctx, m); o.err != nil {
		return o
	}
	o.err = s.find(ctx, &o, step)
	if o.err = errors.Join(o.err, s.checkout.removeFault(ctx, m)); o.err != nil {
		return o
	}
	without, err := s.run(ctx, m.name+"-without", step, append(m.arguments(), "-seed", fmt.Sprint(o.verdict.seed))...)
	if without.seed != 0 {
		err = fmt.Errorf("seed %d fails without the fault as well: %s", without.seed, without.rule)
	}
	o.err = err
	return o
}

// find looks for a fault that is in.
func (s *suite) find(ctx context.Context, o *outcome, step *progress.Step) error {
	m := o.mutant
	if err := s.checkout.buildPackages(ctx, m.packages...); err != nil {
		return err
	}
	step.State("unit test %s", m.test)
	if err := s.failUnitTest(ctx, m); err != nil {
		return err
	}
	started := time.Now()
	var err error
	o.verdict, err = s.run(ctx, m.name, step, append(m.arguments(), "-to-first-failure", "-seeds", fmt.Sprint(s.seeds))...)
	o.took = time.Since(started)
	if err == nil && o.verdict.seed == 0 {
		return fmt.Errorf("it survives %d seeds: %s", o.verdict.ran, m.about)
	}
	return err
}

func (s *suite) failUnitTest(ctx context.Context, m mutant) error {
	out, err := s.checkout.commandIn(ctx, ".", "go", "test", "-count", "1", "-timeout", "1m", "-run", "^"+m.test+"$", m.unit).CombinedOutput()
	switch hangs := []byte("running tests:\n\t\t" + m.test); {
	case err == nil:
		return fmt.Errorf("%s of %s passes with the fault", m.test, m.unit)
	case !bytes.Contains(out, []byte("--- FAIL: "+m.test)) && !bytes.Contains(out, hangs):
		return fmt.Errorf("run %s of %s: %w\n%s", m.test, m.unit, err, out)
	}
	return nil
}

// run runs seeds. Only a seed that fails is a verdict: where the suite fails without
// one, the error says so.
func (s *suite) run(ctx context.Context, name string, step *progress.Step, args ...string) (verdict, error) {
	log, err := os.Create(filepath.Join(s.logs, name+".log"))
	if err != nil {
		return verdict{}, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	step.State("%s, log %s", strings.Join(args, " "), log.Name())
	l := &listener{tell: func(v verdict) { step.State("%d seeds, log %s", v.ran, log.Name()) }}
	cmd := s.checkout.commandIn(ctx, "test/faults", filepath.Join(s.checkout.dir, program), append([]string{
		"-test.v", "-test.run", "^TestSeeds$", "-test.timeout", "24h", "-clusters", fmt.Sprint(s.clusters), "-edits", fmt.Sprint(s.edits), "-within", s.within.String(),
	}, args...)...)
	cmd.Stdout = io.MultiWriter(log, l)
	cmd.Stderr = cmd.Stdout
	err = cmd.Run()
	switch {
	case l.seed == 0 && err != nil:
		return l.verdict, fmt.Errorf("the suite ends without a seed that fails, see %s: %w", log.Name(), err)
	case l.ran == 0:
		return l.verdict, fmt.Errorf("the suite ran no seed, see %s", log.Name())
	}
	return l.verdict, nil
}

// verdict is what the suite says.
type verdict struct {
	// ran is how many seeds have ended.
	ran int
	// seed is the first that failed, or 0, and rule is what it found first.
	seed uint64
	rule string
}

// listener reads the verdict out of what the suite prints.
type listener struct {
	verdict
	tell func(verdict)
	rest []byte
}

// What the suite prints when a seed has ended, and when it has failed.
var (
	ended  = regexp.MustCompile(`\bseed \d+: \d+ operations, `)
	failed = regexp.MustCompile(`\bseed (\d+) failed; again: `)
)

// Write implements io.Writer.
func (l *listener) Write(output []byte) (int, error) {
	l.rest = append(l.rest, output...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(output), nil
		}
		l.rest = rest
		l.hearLine(string(line))
	}
}

func (l *listener) hearLine(line string) {
	match := failed.FindStringSubmatch(line)
	switch {
	case ended.MatchString(line):
		l.ran++
		l.tell(l.verdict)
	case match != nil && l.seed == 0:
		l.seed, _ = strconv.ParseUint(match[1], 10, 64)
	case l.seed != 0 && l.rule == "" && !strings.HasSuffix(line, ":"): // that announces a list
		l.rule = strings.TrimSpace(line)
	}
}
