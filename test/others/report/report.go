// Package report reads what Ginkgo reports of a suite, and prints what came of it.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Result is what came of a spec.
type Result string

// The results of specs.
const (
	Passed Result = "passed"
	Failed Result = "failed"
	// Skipped is a spec that was not run, by itself or since an earlier one failed.
	Skipped Result = "skipped"
	// LeftOut is a spec that was not asked for.
	LeftOut Result = "left out"
)

// Spec is one test of a suite.
type Spec struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Seconds is how long it ran.
	Seconds float64 `json:"seconds"`
	// Message says why it failed or was not run.
	Message string `json:"message,omitempty"`
}

// Measure is a number that a suite has found.
type Measure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Suite is what came of a suite.
type Suite struct {
	Name       string `json:"suite"`
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
	Kwok       string `json:"kwok"`
	Specs      []Spec `json:"specs"`
	// Seconds is how long the suite took, where that is more than its specs took.
	Seconds float64 `json:"seconds,omitempty"`
	// Measures are what the suite has measured, if that is what it is for.
	Measures []Measure `json:"measures,omitempty"`
	// Skipped says how to get what the suite runs from, which is why it has not run.
	Skipped string `json:"skipped,omitempty"`
	// Problem is what kept it from running.
	Problem string `json:"problem,omitempty"`
	// Log is the file with all that the suite said.
	Log string `json:"log,omitempty"`
}

// Count counts the specs with a result.
func (s *Suite) Count(result Result) int {
	count := 0
	for _, spec := range s.Specs {
		if spec.Result == result {
			count++
		}
	}
	return count
}

// Bad reports whether anything failed. Where nothing passed, nothing is proven, unless it
// was not to run.
func (s *Suite) Bad() bool {
	if s.Skipped != "" {
		return false
	}
	return s.Problem != "" || s.Count(Failed) > 0 || s.Count(Passed) == 0
}

// entry is a spec in Ginkgo's JSON report, as far as it matters here.
type entry struct {
	ContainerHierarchyTexts    []string
	ContainerHierarchyLabels   [][]string
	LeafNodeType, LeafNodeText string
	LeafNodeLabels             []string
	State                      string
	RunTime                    time.Duration
	Failure                    struct{ Message string }
}

// Read reads the file that Ginkgo writes with --json-report. Where label is not empty, the
// specs without it are none of the suite.
func Read(file, label string) ([]Spec, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var suites []struct{ SpecReports []entry }
	if err := json.Unmarshal(content, &suites); err != nil {
		return nil, fmt.Errorf("read report %s: %w", file, err)
	}
	var specs []Spec
	for _, suite := range suites {
		for _, e := range suite.SpecReports {
			// What runs before and after all specs is told where it fails.
			if spec := e.toSpec(); spec.Result == Failed || e.LeafNodeType == "It" && e.hasLabel(label) {
				specs = append(specs, spec)
			}
		}
	}
	return specs, nil
}

func (e entry) hasLabel(label string) bool {
	return label == "" || slices.Contains(slices.Concat(append(e.ContainerHierarchyLabels, e.LeafNodeLabels)...), label)
}

func (e entry) toSpec() Spec {
	words := slices.Concat(e.ContainerHierarchyTexts, []string{e.LeafNodeText})
	if e.LeafNodeType != "It" {
		words = append(words, e.LeafNodeType)
	}
	return Spec{
		Name:    strings.Join(strings.Fields(strings.Join(words, " ")), " "),
		Result:  e.toResult(),
		Seconds: e.RunTime.Round(100 * time.Millisecond).Seconds(),
		Message: strings.TrimSpace(e.Failure.Message),
	}
}

func (e entry) toResult() Result {
	switch {
	case e.State == "passed":
		return Passed
	case (e.State == "skipped" || e.State == "pending") && e.Failure.Message == "":
		return LeftOut
	case e.State == "skipped":
		return Skipped
	}
	return Failed
}
