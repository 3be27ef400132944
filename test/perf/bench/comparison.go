package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// sample is what one way took in one round: the time from the first to the last of
// what it wrote, as a client saw them, and the CPU of its process for all of it.
type sample struct{ took, cpu time.Duration }

// way is one way to do the work of a comparison.
type way struct {
	name string
	run  func(ctx context.Context, round int) (sample, error)
	// rounds, unless 0, is in how many of the rounds it takes part, the first ones.
	rounds int

	// took and cpu are of each round, in seconds. The CPU is not known of each way.
	took, cpu []float64
}

func (w *way) takeSample(ctx context.Context, round int) error {
	if w.rounds > 0 && round >= w.rounds {
		return nil
	}
	s, err := w.run(ctx, round)
	if err != nil {
		return fmt.Errorf("round %d of %s: %w", round+1, w.name, err)
	}
	w.took = append(w.took, s.took.Seconds())
	if s.cpu > 0 {
		w.cpu = append(w.cpu, s.cpu.Seconds())
	}
	return nil
}

// comparison has ways take turns at the same work.
type comparison struct {
	// unit is one of what is counted, and count how many of them a round has.
	unit  string
	count int
	ways  []*way
	// limits are those of the ways that the others are compared with.
	limits []*way
}

func (c *comparison) run(ctx context.Context, rounds int) error {
	start := time.Now()
	for round := range rounds {
		for _, w := range pairs.Order(round, c.ways) {
			if err := w.takeSample(ctx, round); err != nil {
				return err
			}
		}
		left := time.Since(start) / time.Duration(round+1) * time.Duration(rounds-round-1)
		fmt.Fprintf(os.Stderr, "  round %d of %d: %ss/s: %s; at most %s left\n", round+1, rounds, c.unit, c.lastRates(round), formatMinutes(left))
	}
	return nil
}

func (c *comparison) lastRates(round int) string {
	var rates []string
	for _, w := range c.ways {
		if round < len(w.took) {
			rates = append(rates, fmt.Sprintf("%s %.0f", w.name, float64(c.count)/w.took[round]))
		}
	}
	return strings.Join(rates, ", ")
}

// print tells of each way how fast it was and what CPU it took, also as ratios to
// the limits.
func (c *comparison) print(out io.Writer) {
	headings := []string{"", c.unit + "s/s"}
	for _, limit := range c.limits {
		headings = append(headings, "to "+limit.name)
	}
	headings = append(headings, "CPU per "+c.unit+", ms")
	for _, limit := range c.limits {
		headings = append(headings, "to "+limit.name)
	}
	fmt.Fprintln(out, strings.Join(append(headings, "rounds"), "\t"))
	for _, w := range c.ways {
		fmt.Fprintln(out, strings.Join(c.formatRow(w), "\t"))
	}
}

func (c *comparison) formatRow(w *way) []string {
	took, cpu := pairs.Of(w.took), pairs.Of(w.cpu)
	cells := []string{w.name, fmt.Sprintf("%.0f", float64(c.count)/took.Median)}
	for _, limit := range c.limits {
		cells = append(cells, formatRatio(w, limit, limit.took, w.took))
	}
	each := ""
	if cpu.Rounds > 0 {
		each = fmt.Sprintf("%.2f", 1000*cpu.Median/float64(c.count))
	}
	cells = append(cells, each)
	for _, limit := range c.limits {
		cells = append(cells, formatRatio(w, limit, w.cpu, limit.cpu))
	}
	return append(cells, fmt.Sprint(took.Rounds))
}

// formatRatio is empty for a limit itself.
func formatRatio(w, limit *way, of, to []float64) string {
	if w == limit {
		return ""
	}
	return pairs.Ratio(of, to).String()
}

// cpuOf is the CPU time that a process takes while something is done or awaited.
func cpuOf(process *sidecar.Process, do func() error) (time.Duration, error) {
	before, err := process.CPUTime()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := process.CPUTime()
	return after - before, err
}
