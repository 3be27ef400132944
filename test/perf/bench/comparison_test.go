package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// scripted is a way that takes in each round as long as said, and notes its turns.
func scripted(name string, turns *[]string, cpu time.Duration, took ...time.Duration) *way {
	return &way{name: name, run: func(_ context.Context, round int) (sample, error) {
		*turns = append(*turns, name)
		return sample{took: took[round], cpu: cpu}, nil
	}}
}

// TestComparison: rates are compared as rates, where more is better, and CPU as
// CPU, where less is better; both round by round.
func TestComparison(t *testing.T) {
	t.Parallel()
	var turns []string
	ours := scripted("ours", &turns, 300*time.Millisecond, 10*time.Second, 20*time.Second, 40*time.Second)
	limit := scripted("limit", &turns, 200*time.Millisecond, 8*time.Second, 19*time.Second, 30*time.Second)
	stage := scripted("stage", &turns, 0, 40*time.Second, 50*time.Second)
	stage.rounds = 2
	c := comparison{unit: "slice", count: 1000, ways: []*way{ours, limit, stage}, limits: []*way{limit}}
	require.NoError(t, c.run(t.Context(), 3))
	require.Equal(t, []string{"ours", "limit", "stage", "stage", "limit", "ours", "ours", "limit"}, turns)

	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	c.print(table)
	require.NoError(t, table.Flush())
	for _, want := range []string{
		`(?m)^ +slices/s +to limit +CPU per slice, ms +to limit +rounds$`,
		`(?m)^ours +50 +0\.80 \(0\.75\.\.0\.95\) +0\.30 +1\.50 \(1\.50\.\.1\.50\) +3$`,
		`(?m)^limit +53 +0\.20 +3$`,
		`(?m)^stage +22 +0\.29 \(0\.20\.\.0\.38\) +2$`,
	} {
		require.Regexp(t, want, out.String())
	}
}

func TestComparisonFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	c := comparison{ways: []*way{{name: "ours", run: func(context.Context, int) (sample, error) { return sample{}, broken }}}}
	err := c.run(t.Context(), 1)
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "round 1 of ours: broken")
}

// TestLength: what is told before it starts is of all that is done.
func TestLength(t *testing.T) {
	t.Parallel()
	both := &world{options: options{nodes: 1000, newNodes: 200, rounds: 11, scheduled: 500, rest: time.Minute}}
	slices, more := *both, *both
	slices.only, more.rounds = "slices", 22
	sum := func(w *world) (sum time.Duration) {
		for _, p := range w.partsInOrder() {
			sum += p.takes
		}
		return sum
	}
	require.Greater(t, sum(both), sum(&slices))
	require.Greater(t, sum(&more), sum(both))
	require.Equal(t, "1 min", estimateLength(nil))
	require.Equal(t, "3 min", estimateLength([]part{{takes: time.Minute}, {takes: 2 * time.Minute}}))
}
