package checkdriver

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

// Result is the outcome of a statement.
type Result struct {
	Outcome   string `json:"outcome"`
	ID        string `json:"id"`
	Statement string `json:"statement"`
	Source    string `json:"source"`
	// Seen is what contradicts the statement, or why it could not be tried.
	Seen    string  `json:"seen,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Report is the outcome of all statements.
type Report struct {
	Driver  string   `json:"driver"`
	Results []Result `json:"results"`
	// Output are the last lines of the driver, if any statement failed.
	Output []string `json:"output,omitempty"`
}

// resultOf is the result of a statement that has returned an error.
func resultOf(s statement, err error, took time.Duration) Result {
	r := Result{Outcome: output.OutcomeOK, ID: s.id, Statement: s.says, Source: s.source, Seconds: took.Round(time.Millisecond).Seconds()}
	if err == nil {
		return r
	}
	r.Outcome, r.Seen = output.OutcomeFailed, err.Error()
	if _, ok := errors.AsType[skipped](err); ok {
		r.Outcome = output.OutcomeSkipped
	}
	return r
}

// countOutcome returns how many statements have an outcome.
func (r *Report) countOutcome(outcome string) int {
	found := 0
	for _, result := range r.Results {
		if result.Outcome == outcome {
			found++
		}
	}
	return found
}

func (r *Report) printReport(out io.Writer, format output.Format) error {
	switch format {
	case output.JSON:
		return output.Value(out, format, r)
	case output.JUnit:
		s := output.Suite{Name: "check-driver " + r.Driver, Output: strings.Join(r.Output, "\n")}
		for _, result := range r.Results {
			s.Add(output.Case{Name: result.ID + ": " + result.Statement, Class: r.Driver, Seconds: result.Seconds}, result.Outcome,
				&output.Reason{Message: joinLines(result.Seen), Text: result.Source + ": " + result.Seen})
		}
		return s.Print(out)
	}
	rows := output.Rows{Columns: []output.Column{{Name: "result"}, {Name: "id"}, {Name: "statement"}, {Name: "source"}, {Name: "seen"}}}
	for _, result := range r.Results {
		rows.Add(result.Outcome, result.ID, result.Statement, result.Source, joinLines(result.Seen))
	}
	return rows.Print(out, format)
}

// joinLines returns a text as one line, without the last lines of the driver.
func joinLines(text string) string {
	text, _, _ = strings.Cut(text, "; its last lines:\n")
	return strings.ReplaceAll(text, "\n", "; ")
}
