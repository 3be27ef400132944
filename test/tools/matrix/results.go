package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// The actions that end a test, or a package.
const (
	passed  = "pass"
	failed  = "fail"
	skipped = "skip"
)

// results gathers how tests end.
type results struct {
	log, progress io.Writer
	// rest is the beginning of a line.
	rest []byte
	// order is that in which the tests started.
	order  []string
	ended  map[string]string
	parent map[string]bool
	// said is the last that a test has logged.
	said map[string]string
}

func newResults(log, progress io.Writer) *results {
	return &results{log: log, progress: progress, ended: map[string]string{}, parent: map[string]bool{}, said: map[string]string{}}
}

// Write takes in what go test -json writes. What is not JSON goes to the log as
// it is. It implements io.Writer.
func (r *results) Write(output []byte) (int, error) {
	r.rest = append(r.rest, output...)
	for {
		line, rest, found := bytes.Cut(r.rest, []byte("\n"))
		if !found {
			return len(output), nil
		}
		r.rest = rest
		var e event
		if json.Unmarshal(line, &e) != nil {
			e = event{Output: string(line) + "\n"}
		}
		r.addEvent(e)
	}
}

// logged is what t.Log, t.Skip and t.Error make of their arguments.
var logged = regexp.MustCompile(`^\s*\S+\.go:\d+: (.*\S)`)

func (r *results) addEvent(e event) {
	_, _ = io.WriteString(r.log, e.Output)
	if e.Test == "" {
		return
	}
	if match := logged.FindStringSubmatch(e.Output); match != nil {
		r.said[e.Test] = match[1]
	}
	switch e.Action {
	case "run":
		r.order = append(r.order, e.Test)
		for name := e.Test; strings.Contains(name, "/"); {
			name = name[:strings.LastIndexByte(name, '/')]
			r.parent[name] = true
		}
	case passed, failed, skipped:
		r.ended[e.Test] = e.Action
		r.printEvent(e)
	}
}

// printEvent has a line for each test function, and for each part that does not pass.
func (r *results) printEvent(e event) {
	if e.Action == passed && strings.Contains(e.Test, "/") {
		return
	}
	took := time.Duration(e.Elapsed * float64(time.Second)).Round(100 * time.Millisecond)
	fmt.Fprintf(r.progress, "  %s  %s (%s)\n", e.Action, e.Test, took)
}

// counts is what came of tests that have no parts, and of those that failed for
// a reason that is in none of their parts.
type counts struct {
	passed  int
	failed  []string
	skipped []skip
}

// skip is a test that a version cannot do.
type skip struct{ test, reason string }

func (r *results) countResults() counts {
	var c counts
	for _, test := range r.order {
		switch end := r.ended[test]; {
		case end == "" && strings.Contains(test, "/"): // as the test that it is part of
		case end == "":
			c.failed = append(c.failed, test+" (did not end)")
		case end == failed && !r.failedBelow(test):
			c.failed = append(c.failed, test)
		case end == failed || r.parent[test]:
		case end == skipped:
			c.skipped = append(c.skipped, skip{test, r.said[test]})
		default:
			c.passed++
		}
	}
	return c
}

// failedBelow reports whether a part of the test is to blame.
func (r *results) failedBelow(test string) bool {
	return slices.ContainsFunc(r.order, func(other string) bool {
		return strings.HasPrefix(other, test+"/") && r.ended[other] == failed
	})
}
