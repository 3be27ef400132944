// Package pairs compares ways to do the same work that take turns in rounds. What
// happens to the machine in a round happens to all who take part in it, so it is
// the ratio within a round that counts, and of all rounds the median.
package pairs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Order is the order of the ways in a round. It is reversed every other time, so
// that a machine that slows down, or a cluster that fills up, favours no one.
func Order[T any](round int, ways []T) []T {
	ordered := slices.Clone(ways)
	if round%2 == 1 {
		slices.Reverse(ordered)
	}
	return ordered
}

// Quantile returns the least value that a share of all, such as 0.99, are not above, or zero if there are none.
func Quantile[T cmp.Ordered](values []T, share float64) T {
	if len(values) == 0 {
		return *new(T)
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// Spread is the median of some rounds' figures, the least and the most.
type Spread struct {
	Rounds           int
	Median, Min, Max float64
}

// Of returns the spread of the rounds' figures.
func Of(figures []float64) Spread {
	count := len(figures)
	if count == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(figures))
	return Spread{count, (sorted[(count-1)/2] + sorted[count/2]) / 2, sorted[0], sorted[count-1]}
}

// Ratio returns the spread of one way's figures as shares of another's, round by
// round. A way that takes part in fewer rounds takes part in the first ones.
func Ratio(of, to []float64) Spread {
	ratios := make([]float64, min(len(of), len(to)))
	for round := range ratios {
		ratios[round] = of[round] / to[round]
	}
	return Of(ratios)
}

// String is such as "0.92 (0.80..1.01)", and empty where there was no round.
func (s Spread) String() string {
	if s.Rounds == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", s.Median, s.Min, s.Max)
}

// Milliseconds is a time as figures show it.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
