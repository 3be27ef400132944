package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
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

// shortPart is how long a part takes that has no row of its own.
const shortPart = 10 * time.Second

// printTimes prints what the parts took, the longest first.
func printTimes(out io.Writer, results []result) {
	results = slices.SortedStableFunc(slices.Values(results), func(a, b result) int { return cmp.Compare(b.took, a.took) })
	const row = "%8s %8s  %s\n"
	fmt.Fprintf(out, row, "TIME", "CPU", "PART")
	var all, short result
	shorts := 0
	for _, r := range results {
		all.cpu += r.cpu
		if r.took < shortPart {
			short.took, short.cpu = short.took+r.took, short.cpu+r.cpu
			shorts++
			continue
		}
		fmt.Fprintf(out, row, r.took.Round(time.Second), r.cpu.Round(time.Second), r.name)
	}
	if shorts > 0 {
		fmt.Fprintf(out, row, short.took.Round(time.Second), short.cpu.Round(time.Second), fmt.Sprintf("%d parts that took less than %s each", shorts, shortPart))
	}
	fmt.Fprintf(out, row, "", all.cpu.Round(time.Second), "all")
}
