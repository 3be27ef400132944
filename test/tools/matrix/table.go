package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// row is a version in the table.
type row struct {
	version string
	counts
	took time.Duration
	// problem is what kept the tests from running.
	problem string
	// log is where everything is that the tests said.
	log string
}

func (r row) testsRun() int { return r.passed + len(r.failed) }

// hasFailed reports whether the version does not do what it should. Where nothing ran,
// nothing is proven.
func (r row) hasFailed() bool { return r.problem != "" || len(r.failed) > 0 || r.testsRun() == 0 }

func printTable(out io.Writer, rows []row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KUBERNETES\tRAN\tPASSED\tFAILED\tSKIPPED\tTIME\tREMARKS")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s", r.version, r.testsRun(), r.passed, len(r.failed), len(r.skipped), r.took.Round(time.Second))
		// The first remark is beside the figures, the others are below it.
		separator := "\t"
		for _, remark := range r.listRemarks() {
			fmt.Fprint(table, separator, remark)
			separator = "\n\t\t\t\t\t\t"
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// mostFailed is how many failed tests are named: where a program panics, none ends.
const mostFailed = 30

// listRemarks are what failed, what the version cannot do, and where to read on.
func (r row) listRemarks() []string {
	var remarks []string
	if r.problem != "" {
		remarks = append(remarks, r.problem)
	} else if r.testsRun() == 0 {
		remarks = append(remarks, "no test ran")
	}
	for i, test := range r.failed {
		if i == mostFailed {
			remarks = append(remarks, fmt.Sprintf("failed: %d more", len(r.failed)-i))
			break
		}
		remarks = append(remarks, "failed: "+test)
	}
	for _, s := range r.skipped {
		remarks = append(remarks, fmt.Sprintf("cannot: %s (%s)", s.test, dropVersion(s.reason)))
	}
	if r.hasFailed() {
		remarks = append(remarks, "log: "+r.log)
	}
	return remarks
}

// dropVersion leaves out the version, which the row has.
func dropVersion(reason string) string {
	if strings.HasPrefix(reason, "Kubernetes ") {
		if _, rest, found := strings.Cut(reason, ": "); found {
			return rest
		}
	}
	if reason == "" {
		return "no reason given"
	}
	return reason
}
