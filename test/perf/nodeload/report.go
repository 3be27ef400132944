package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// series are a figure of a way, round by round.
func (w *way) series(of func(*figures) float64) []float64 {
	var all []float64
	for _, f := range w.turns {
		all = append(all, of(f))
	}
	return all
}

// table prints figures of both ways beside each other.
type table struct {
	*tabwriter.Writer

	actual, played *way
}

func printComparison(out io.Writer, actual, played *way) error {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), actual, played}
	t.printHeading("requests per node that starts")
	t.printRequests(func(f *figures) map[string]tally { return f.start }, func(f *figures) int { return f.nodes })
	t.printHeading("requests per Pod")
	t.printRequests(func(f *figures) map[string]tally { return f.pods }, func(f *figures) int { return f.podCount })
	t.printHeading("reads of a claim, at least to at most")
	for _, component := range []string{"kubelet", "driver"} {
		fmt.Fprintf(t, "%s\t%s\t%s\n", component, actual.formatReads(component), played.formatReads(component))
	}
	t.printHeading("refused requests, all rounds")
	t.printFailures()
	t.printHeading("watches, CPU and memory")
	for _, title := range []string{
		driverWatches, allWatches, startCPU, restCPU, podCPU, nodeHeap, resident, sidecarMemory, sidecarRestCPU, sidecarPodCPU, lateRequests, longestLag,
	} {
		t.printRow(title, func(f *figures) float64 { return f.values[title] })
	}
	fmt.Fprintf(t, "\nOf each figure the median. A ratio is the median of the ratios within %d rounds, with the least and the most.\n", len(actual.turns))
	return t.Flush()
}

func (t table) printHeading(title string) {
	fmt.Fprintf(t, "\n%s\t%s\t%s\tratio\tsent by, flow schema and priority level\n", title, t.actual.name, t.played.name)
}

// printRow prints a figure, and after it what more there is to say.
func (t table) printRow(title string, of func(*figures) float64, more ...string) {
	actual, played := t.actual.series(of), t.played.series(of)
	ratio := ""
	if pairs.Of(actual).Min > 0 {
		ratio = pairs.Ratio(played, actual).String()
	}
	fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%s\t%s\n", title, pairs.Of(actual).Median, pairs.Of(played).Median, ratio, strings.Join(more, ""))
}

// printRequests prints how often requests of each kind were sent per node or Pod, and the sum for each component.
func (t table) printRequests(of func(*figures) map[string]tally, count func(*figures) int) {
	all := map[string]bool{}
	for _, f := range slices.Concat(t.actual.turns, t.played.turns) {
		for what := range of(f) {
			component, _, _ := strings.Cut(what, " ")
			all[what], all[component] = true, true
		}
	}
	for _, what := range slices.Sorted(maps.Keys(all)) {
		title, senders := what, t.formatSenders(of, what)
		if !strings.Contains(what, " ") {
			title, senders = what+", all", ""
		}
		t.printRow(title, func(f *figures) float64 { return float64(countRequests(of(f), what)) / float64(count(f)) }, senders)
	}
}

// countRequests counts those of one kind, or all of a component.
func countRequests(all map[string]tally, what string) (sum int) {
	for kind, t := range all {
		if kind == what || strings.HasPrefix(kind, what+" ") {
			sum += t.total()
		}
	}
	return sum
}

// formatSenders says who sends requests of one kind, once if it is the same for both ways.
func (t table) formatSenders(of func(*figures) map[string]tally, what string) string {
	names := func(w *way) string {
		found := map[string]bool{}
		for _, f := range w.turns {
			for from := range of(f)[what] {
				found[from.String()] = true
			}
		}
		return strings.Join(slices.Sorted(maps.Keys(found)), " and ")
	}
	actual, played := names(t.actual), names(t.played)
	if actual == played {
		return actual
	}
	return actual + " | " + played
}

// formatReads says how often a component has read a claim, in all rounds.
func (w *way) formatReads(component string) string {
	least, most := -1, 0
	for _, f := range w.turns {
		for _, by := range f.reads {
			if most = max(most, by[component]); least < 0 || by[component] < least {
				least = by[component]
			}
		}
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// printFailures prints how many requests of each kind the API server has refused, and why.
func (t table) printFailures() {
	sum := func(w *way) map[string]int {
		all := map[string]int{}
		for _, f := range w.turns {
			for what, count := range f.failures {
				all[what] += count
			}
		}
		return all
	}
	actual, played := sum(t.actual), sum(t.played)
	kinds := maps.Clone(actual)
	maps.Copy(kinds, played)
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(t, "%s\t%d\t%d\n", what, actual[what], played[what])
	}
}

// printFleet prints what a large fleet takes.
func printFleet(out io.Writer, f *figures) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, title := range []string{sidecarMemory, sidecarRestCPU, driverWatches, allWatches, nodeHeap, residentGrowth, startCPU, restCPU, lateRequests, longestLag} {
		fmt.Fprintf(w, "%s\t%.2f\n", title, f.values[title])
	}
	return w.Flush()
}
