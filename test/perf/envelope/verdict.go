package main

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// The verdicts on a metric at a point.
const (
	regression  = "REGRESSION"
	improvement = "improvement"
	same        = "~"
	// unconfirmed is a regression that the point did not show again.
	unconfirmed = "not seen again"
	// unpaced says that the rounds measured their own writer.
	unpaced = "own pace"
)

// leastDelta is the change that is worth a verdict, however certain it is.
const leastDelta = 0.1

// baseName stands in for the dimension of the base point, which is a point of each.
const baseName = "base"

// verdict is what becomes of a metric at a point from one subject to the other. The base point has one, of the dimension "base".
type verdict struct {
	Dimension string `json:"dimension"`
	Value     int    `json:"value"`
	Metric    string `json:"metric"`
	Unit      string `json:"unit"`
	// Old and New are medians, and Delta is the change as a share of Old.
	Old     float64 `json:"old"`
	New     float64 `json:"new"`
	Delta   float64 `json:"delta"`
	P       float64 `json:"p"`
	Verdict string  `json:"verdict"`
}

// compare compares samples as benchstat does: by medians and the Mann-Whitney U test, without
// an assumption about how the figures are distributed.
func compare(m metric, oldValues, newValues []float64) verdict {
	thresholds := benchmath.DefaultThresholds
	before := benchmath.NewSample(slices.Clone(oldValues), &thresholds)
	after := benchmath.NewSample(slices.Clone(newValues), &thresholds)
	v := verdict{
		Metric: m.key, Unit: m.unit, Verdict: same,
		Old: benchmath.AssumeNothing.Summary(before, 0.95).Center,
		New: benchmath.AssumeNothing.Summary(after, 0.95).Center,
	}
	comparison := benchmath.AssumeNothing.Compare(before, after)
	v.P = comparison.P
	if v.Old == v.New {
		return v
	}
	v.Delta = v.New/v.Old - 1
	if v.Old == 0 {
		v.Delta = math.MaxFloat64 // JSON has no infinity
	}
	if comparison.P > comparison.Alpha || math.Abs(v.Delta) < leastDelta {
		return v
	}
	v.Verdict = improvement
	if (v.Delta > 0) != m.grows {
		v.Verdict = regression
	}
	return v
}

// judge returns the verdicts on a point. Of some hundred metrics some look worse by chance alone, so a
// regression is what the rounds after the first ones show again.
func (p *point) judge(oldName, newName string) []verdict {
	var all []verdict
	for _, m := range metrics {
		v := compare(m, valuesOf(p.Samples[oldName], m), valuesOf(p.Samples[newName], m))
		v.Dimension, v.Value = p.Dimension, p.Value
		if len(p.Again[newName]) > 0 && v.Verdict == regression {
			again := compare(m, valuesOf(p.Again[oldName], m), valuesOf(p.Again[newName], m))
			if again.Verdict != regression {
				v.Verdict = unconfirmed
			}
		}
		if m.paced && p.isUnpaced() && v.Verdict != same {
			v.Verdict = unpaced
		}
		all = append(all, v)
	}
	return all
}

// hasRegression reports whether the first rounds of a point look worse.
func (p *point) hasRegression(oldName, newName string) bool {
	return slices.ContainsFunc(p.judge(oldName, newName), func(v verdict) bool { return v.Verdict == regression })
}

// countRegressions counts what makes a run fail.
func countRegressions(all []verdict) int {
	count := 0
	for _, v := range all {
		if v.Verdict == regression {
			count++
		}
	}
	return count
}

func valuesOf(samples []sample, m metric) []float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, s[m.key])
	}
	return values
}

// formatDelta is such as "+12.3 %".
func (v verdict) formatDelta() string {
	switch {
	case v.Verdict == same && math.Abs(v.Delta) < leastDelta:
		return same
	case v.Delta == math.MaxFloat64:
		return "from 0"
	}
	return fmt.Sprintf("%+.1f %%", 100*v.Delta)
}
