package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// checker runs kwok-dractl.
type checker struct {
	// logs is a folder that is kept.
	logs string
	// programs is the folder of the control plane, and dractl the program on trial itself.
	programs, dractl string
}

// outcome is what became of a mutant.
type outcome struct {
	mutant *mutant
	// seed is that of the first story that has found it, and statement what that violates.
	seed            int64
	statement, seen string
	took            time.Duration
	err             error
}

// finding is a statement in the report of kwok-dractl.
type finding struct {
	ID    string  `json:"id"`
	Seen  string  `json:"seen"`
	Seeds []int64 `json:"seeds"`
}

// findFault has stories find a fault, and sees that the story that found it keeps the statement without the fault.
func (c *checker) findFault(ctx context.Context, m *mutant, program string, seeds int, step *progress.Step) outcome {
	t := trials[m.program]
	o := outcome{mutant: m}
	started := time.Now()
	for first := 1; first <= seeds && o.seed == 0; first += t.batch {
		step.State("stories from %d", first)
		findings, err := t.play(ctx, c, m, program, m.storyArguments(first, min(t.batch, seeds-first+1)))
		if err != nil {
			o.err = err
			return o
		}
		for _, f := range findings {
			if o.seed == 0 || f.Seeds[0] < o.seed {
				o.seed, o.statement, o.seen = f.Seeds[0], f.ID, f.Seen
			}
		}
	}
	o.took = time.Since(started)
	if o.seed == 0 {
		o.err = fmt.Errorf("it survives %d stories: %s", seeds, m.about)
		return o
	}
	step.State("story %d without the fault", o.seed)
	released, err := t.build(ctx, c, "")
	if err != nil {
		o.err = err
		return o
	}
	findings, err := t.play(ctx, c, m, released, m.storyArguments(int(o.seed), 1))
	if slices.ContainsFunc(findings, func(f finding) bool { return f.ID == o.statement }) {
		err = errors.Join(err, fmt.Errorf("story %d violates %s without the fault as well", o.seed, o.statement))
	}
	o.err = err
	return o
}

// storyArguments choose stories, and the statements that the mutant breaks.
func (m *mutant) storyArguments(first, count int) []string {
	return []string{
		"--seed", fmt.Sprint(first), "--seeds", fmt.Sprint(count), "--shrink", "0", "--only", "^(" + strings.Join(m.statements, "|") + ")$", "-o", "json",
	}
}

// findViolations runs kwok-dractl, and returns which statements are violated.
func (c *checker) findViolations(ctx context.Context, m *mutant, arguments []string) ([]finding, error) {
	log, err := os.OpenFile(filepath.Join(c.logs, strings.ReplaceAll(m.name, "/", "-")+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	fmt.Fprintln(log, c.dractl, strings.Join(arguments, " "))
	cmd := exec.CommandContext(ctx, c.dractl, arguments...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	var printed strings.Builder
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&printed, log), log
	runErr := cmd.Run()
	var report struct {
		Results []finding `json:"results"`
	}
	if err := json.Unmarshal([]byte(printed.String()), &report); err != nil {
		return nil, fmt.Errorf("%s prints no report, see %s: %w", arguments[0], log.Name(), errors.Join(runErr, err))
	}
	return slices.DeleteFunc(report.Results, func(f finding) bool { return len(f.Seeds) == 0 }), nil
}

// printTable prints what became of the mutants. The error names those of which nothing is proven.
func printTable(out io.Writer, outcomes []outcome) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nMUTANT\tFOUND\tAFTER\tBY")
	var bad []string
	for _, o := range outcomes {
		found, by := "not looked for", "it compiles"
		switch {
		case o.err != nil:
			found, by = "not proven", o.err.Error()
			bad = append(bad, o.mutant.name)
		case o.seed != 0:
			found, by = fmt.Sprintf("in story %d", o.seed), o.seen
		}
		by, _, _ = strings.Cut(by, "\n")
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", o.mutant.name, found, o.took.Round(time.Second), by)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	if len(bad) > 0 {
		return fmt.Errorf("not proven: %s", strings.Join(bad, ", "))
	}
	return nil
}
