package sidecar

import (
	"strconv"
	"strings"
)

// SumMetric sums the values of all series of a metric, in the Prometheus text format, whose labels contain the given pairs,
// such as `verb="create"`.
func SumMetric(text, name string, labels ...string) float64 {
	sum := 0.0
	for line := range strings.Lines(text) {
		if value, ok := parseSample(strings.TrimSuffix(line, "\n"), name, labels); ok {
			sum += value
		}
	}
	return sum
}

// parseSample reads one line of the Prometheus text format, and reports whether it is
// of the metric and has the labels.
func parseSample(line, name string, labels []string) (float64, bool) {
	rest, found := strings.CutPrefix(line, name)
	if !found || rest == "" || rest[0] != ' ' && rest[0] != '{' {
		return 0, false
	}
	for _, label := range labels {
		if !strings.Contains(rest, label) {
			return 0, false
		}
	}
	value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
	return value, err == nil
}
