package checkscheduler

import (
	"io"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Report is the outcome of all stories.
type Report struct {
	Scheduler string `json:"scheduler"`

	trial.Report
}

// newReport makes the report of no story. skipped says of statements why no story can violate them.
func newReport(scheduler, kubernetes string, first int64, skipped map[string]string, statements []drajudge.Statement) *Report {
	r := &Report{Scheduler: scheduler, Report: trial.Report{Command: "check-scheduler", Subject: scheduler, Kubernetes: kubernetes, FirstSeed: first}}
	r.AddStatements(statements)
	for id, why := range skipped {
		r.Skip(func(other string) bool { return other == id }, why)
	}
	return r
}

func (r *Report) printReport(out io.Writer, format output.Format) error {
	if format == output.JSON {
		return output.Value(out, format, r)
	}
	return r.Print(out, format)
}
