package faults

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this seed and no other")
	seedCount = flag.Uint64("seeds", 10, "how many seeds are run")
	firstSeed = flag.Uint64("first", 1, "the first seed of those that are run")
	clusters  = flag.Int("clusters", 1, "clusters on which the seeds are run, side by side; go test has as many at a time as -parallel says")
	budget    = flag.Duration("budget", 0, "no seed is begun after this time; 0: all are run")
	toFailure = flag.Bool("to-first-failure", false, "begin no seed once one has failed")
	within    = flag.Duration("within", stuck, "how soon after the last fault all must be right; 30s on a machine that has nothing else to do")
)

// promised is how soon all is right on a machine that has nothing else to do.
const promised = 30 * time.Second

// TestSeeds runs seed after seed. One that fails is named, with how to run it
// again, and the others are run all the same.
func TestSeeds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	all := &ran{}
	t.Cleanup(func() {
		cancel()
		t.Log(summary(all.results))
		if *onlyFeatures != "" && !all.haveFeatures() {
			t.Errorf("no seed that was run has a feature that matches -features %s", *onlyFeatures)
		}
	})
	seeds := handOut(ctx, chosenSeeds())
	for i := range *clusters {
		t.Run(fmt.Sprintf("cluster-%d", i+1), func(t *testing.T) {
			t.Parallel()
			w, err := newWorld(t)
			require.NoError(t, err)
			for seed := range seeds {
				done := newRun(w, seed, *within, t.Logf).do(t.Context())
				all.add(&done)
				done.tell(t)
				if done.err != nil && *toFailure {
					cancel()
				}
			}
		})
	}
}

// ran are the seeds that were run.
type ran struct {
	mu      sync.Mutex
	results []result
}

// haveFeatures reports whether any seed had a feature.
func (r *ran) haveFeatures() bool {
	return slices.ContainsFunc(r.results, func(one result) bool { return len(one.disruptions) > 0 })
}

func (r *ran) add(one *result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, *one)
}

// handOut hands seeds out until ctx ends, or the time is over.
func handOut(ctx context.Context, from []uint64) <-chan uint64 {
	seeds := make(chan uint64)
	started := time.Now()
	go func() {
		defer close(seeds)
		for _, seed := range from {
			if *budget > 0 && time.Since(started) > *budget {
				return
			}
			select {
			case seeds <- seed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return seeds
}

func chosenSeeds() []uint64 {
	if *oneSeed != 0 {
		return []uint64{*oneSeed}
	}
	var seeds []uint64
	for i := range *seedCount {
		seeds = append(seeds, *firstSeed+i)
	}
	return seeds
}

func (r *result) tell(t *testing.T) {
	t.Helper()
	t.Logf("seed %d: %d operations, %d changes, %d reads, %d writes, %d faults, %d sidecars, %s; %s; right after %.1f s; took %s",
		r.seed, r.operations, r.touched, r.requests-r.writes, r.writes, r.faults, r.launched, r.disrupted(), strings.Join(r.edits, ", "), r.settled.Seconds(), r.took())
	if r.err != nil {
		again := fmt.Sprintf("go test ./faults -run TestSeeds -seed %d", r.seed)
		if *onlyFeatures != "" {
			again += fmt.Sprintf(" -features %q", *onlyFeatures)
		}
		t.Errorf("seed %d failed; again: %s\n%v", r.seed, again, r.err)
	}
}

// took tells how long the faults, the return to what is right, the end, and the features took.
func (r *result) took() string {
	var parts []string
	for i := range len(r.times) - 1 {
		parts = append(parts, fmt.Sprintf("%.1f", r.times[i+1].Sub(r.times[i]).Seconds()))
	}
	return strings.Join(parts, " + ") + " s"
}

func (r *result) disrupted() string {
	if len(r.disruptions) == 0 {
		return "nothing else"
	}
	return strings.Join(r.disruptions, ", ")
}

// summarized are the rows of the summary that are no features.
var summarized = []string{
	"leader", "lease", "twins", "annotations", "labels", "single node",
	"kill", "stop", "usurp", "freeze", "partition", "clock", "controllers", "apiserver", "compaction", "etcd",
}

// summary is a table of all seeds by what befell them.
func summary(results []result) string {
	type row struct {
		seeds, failed, late int
		settled             []time.Duration
		faults, writes      int
	}
	rows := map[string]*row{}
	count := func(name string, r *result) {
		if rows[name] == nil {
			rows[name] = &row{}
		}
		one := rows[name]
		one.seeds++
		one.faults += r.faults
		one.writes += r.writes
		one.settled = append(one.settled, r.settled)
		if r.err != nil {
			one.failed++
		} else if r.settled > promised {
			one.late++
		}
	}
	for i := range results {
		seen := slices.Compact(slices.Sorted(slices.Values(results[i].disruptions)))
		for _, name := range append(seen, "all seeds") {
			count(name, &results[i])
		}
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nwith\tseeds\tfailed\tlate\tfaults\twrites\tright after, median\tmost")
	for _, name := range slices.Concat(summarized, featureNames(), []string{"all seeds"}) {
		if one := rows[name]; one != nil {
			slices.Sort(one.settled)
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f s\t%.1f s\n", name, one.seeds, one.failed, one.late, one.faults, one.writes,
				one.settled[len(one.settled)/2].Seconds(), one.settled[len(one.settled)-1].Seconds())
		}
	}
	_ = table.Flush()
	return text.String() + fmt.Sprintf("late: right, but more than %s after the last fault\n", promised)
}
