package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// lines is the output that the lanes share, a whole write after the other. It is
// a log on terminals too, where several lines cannot be written again.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(data)
}

// times are where the time of a part goes.
type times struct {
	// took is by the clock, and cpu by all processes of the part. building is what of cpu is
	// not of its tests, or 0 where Go has kept the results of some.
	took, cpu, building time.Duration
	// clusters is how many have started, and starting how long that took by the clock.
	clusters int
	starting time.Duration
}

// readNotes reads what tests and clusters have noted.
func (t *times) readNotes(notes io.Reader) {
	var tests time.Duration
	var what, text string
	for n, _ := fmt.Fscanln(notes, &what, &text); n == 2; n, _ = fmt.Fscanln(notes, &what, &text) {
		took, _ := time.ParseDuration(text)
		switch what {
		case testsTime:
			tests += took
		case cluster.StartTime:
			t.clusters++
			t.starting += took
		}
	}
	if tests > 0 {
		t.building = t.cpu - tests
	}
}

func (t *times) addTimes(other times) {
	t.took, t.cpu, t.building = t.took+other.took, t.cpu+other.cpu, t.building+other.building
	t.clusters, t.starting = t.clusters+other.clusters, t.starting+other.starting
}

// shortPart is how long a part takes that has no row of its own.
const shortPart = 10 * time.Second

// printTimes prints what the parts took, the longest first. A part waits at least for as
// long as it takes more time than CPU time.
func printTimes(out io.Writer, results []result) {
	results = slices.SortedStableFunc(slices.Values(results), func(a, b result) int { return cmp.Compare(b.took, a.took) })
	const row = "%8s %8s %8s %8s %11s  %s\n"
	fmt.Fprintf(out, row, "TIME", "WAITING", "CPU", "BUILDING", "CLUSTERS", "PART")
	var all, short times
	shorts := 0
	for _, r := range results {
		all.addTimes(r.times)
		if r.took < shortPart {
			short.addTimes(r.times)
			shorts++
			continue
		}
		r.printRow(out, row, r.name)
	}
	if shorts > 0 {
		short.printRow(out, row, fmt.Sprintf("%d parts that took less than %s each", shorts, shortPart))
	}
	all.took = 0 // they run side by side
	all.printRow(out, row, "all")
}

func (t *times) printRow(out io.Writer, row, name string) {
	seconds := func(d time.Duration) string {
		if d <= 0 {
			return ""
		}
		return d.Round(time.Second).String()
	}
	clusters := ""
	if t.clusters > 0 {
		clusters = fmt.Sprintf("%d in %s", t.clusters, seconds(t.starting))
	}
	fmt.Fprintf(out, row, seconds(t.took), seconds(t.took-t.cpu), seconds(t.cpu), seconds(t.building), clusters, name)
}
