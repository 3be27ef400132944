package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// effectLimit is how late an effect may come.
const effectLimit = time.Minute

// sample is what was measured in a while.
type sample struct {
	changes, nodes, pods int
	resident, heap       int64 // bytes; heap is after a collection
	goroutines           int
	// median and worst are of the lags, by kind.
	median, worst map[string]time.Duration
}

// takeSample measures. Changes that never had an effect are an error.
func (w *world) takeSample(ctx context.Context, c *churn) (s sample, err error) {
	lags, stuck := w.effects.takeLags(effectLimit)
	if stuck > 0 {
		return s, fmt.Errorf("wait for effects: %d changes have had none for %s", stuck, effectLimit)
	}
	s = sample{changes: c.made, nodes: len(c.nodes), pods: len(c.pods), median: map[string]time.Duration{}, worst: map[string]time.Duration{}}
	for kind, all := range lags {
		slices.Sort(all)
		s.median[kind], s.worst[kind] = all[len(all)/2], all[len(all)-1]
	}
	if s.resident, err = w.sidecar.ResidentMemory(); err != nil {
		return s, err
	}
	if s.heap, err = w.sidecar.HeapAfterCollection(ctx); err != nil {
		return s, err
	}
	goroutines, err := w.sidecar.Metric(ctx, "go_goroutines")
	s.goroutines = int(goroutines)
	return s, err
}

const header = "   TIME  CHANGES  NODES  PODS  RESIDENT      HEAP  GOROUTINES  LAG, MEDIAN AND WORST"

func (s *sample) formatLine(after time.Duration) string {
	var lags []string
	for _, kind := range kinds {
		if s.worst[kind] > 0 {
			lags = append(lags, fmt.Sprintf("%s %d %d ms", kind, s.median[kind].Milliseconds(), s.worst[kind].Milliseconds()))
		}
	}
	return fmt.Sprintf("%7s  %7d  %5d  %4d  %4.0f MiB  %4.1f MiB  %10d  %s", after.Round(time.Second), s.changes, s.nodes, s.pods,
		inMebibytes(s.resident), inMebibytes(s.heap), s.goroutines, strings.Join(lags, ", "))
}

func inMebibytes(bytes int64) float64 { return float64(bytes) / sidecar.MiB }

// measure is something that is to stay flat.
type measure struct {
	what string
	of   func(s *sample) (value float64, known bool)
	// The last quarter may be so much more than the second: by a share, and by an
	// amount where it is small.
	share, amount float64
}

func lagOf(kind string) func(s *sample) (float64, bool) {
	return func(s *sample) (float64, bool) {
		median, known := s.median[kind]
		return float64(median.Milliseconds()), known
	}
}

// Lags hang on the machine, which others use too; memory and goroutines do not.
var measures = []measure{
	{"resident memory, MiB", func(s *sample) (float64, bool) { return inMebibytes(s.resident), true }, 0.1, 4},
	{"heap, MiB", func(s *sample) (float64, bool) { return inMebibytes(s.heap), true }, 0.05, 1},
	{"goroutines", func(s *sample) (float64, bool) { return float64(s.goroutines), true }, 0.05, 3},
	{"lag of publishing, ms", lagOf(published), 0.5, 20},
	{"lag of preparing, ms", lagOf(prepared), 0.5, 20},
	{"lag of tainting, ms", lagOf(tainted), 0.5, 20},
}

// verdict says whether a measure is flat.
type verdict struct {
	what         string
	second, last float64 // medians of the second and of the last quarter
	flat         bool
}

// judgeMeasures compares the last quarter with the second: the first is for warming up.
func judgeMeasures(samples []sample) []verdict {
	quarter := len(samples) / 4
	var all []verdict
	for _, m := range measures {
		v := verdict{what: m.what, second: m.medianOf(samples[quarter : 2*quarter]), last: m.medianOf(samples[len(samples)-quarter:])}
		v.flat = v.last <= v.second*(1+m.share)+m.amount
		all = append(all, v)
	}
	return all
}

// medianOf is the median, which a minute in which the machine was busy with
// something else does not move.
func (m *measure) medianOf(samples []sample) float64 {
	var values []float64
	for i := range samples {
		if value, known := m.of(&samples[i]); known {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// printVerdicts says whether all is flat. What is not is an error.
func printVerdicts(out io.Writer, samples []sample) error {
	var rising []string
	for _, v := range judgeMeasures(samples) {
		word := "flat"
		if !v.flat {
			word = "RISING"
			rising = append(rising, v.what)
		}
		fmt.Fprintf(out, "%-22s  second quarter %8.1f, last quarter %8.1f: %s\n", v.what, v.second, v.last, word)
	}
	if len(rising) > 0 {
		return fmt.Errorf("compare the quarters: not flat: %s", strings.Join(rising, ", "))
	}
	return nil
}
