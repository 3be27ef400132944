package trial

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Result is the outcome of a statement.
type Result struct {
	Outcome   string         `json:"outcome"`
	ID        string         `json:"id"`
	Level     drajudge.Level `json:"level"`
	Statement string         `json:"statement"`
	Source    string         `json:"source"`
	// Seen is the first violation, or why no story could violate the statement.
	Seen string `json:"seen,omitempty"`
	// Seeds are of the stories that violate it.
	Seeds []int64 `json:"seeds,omitempty"`
	// Evidence is the smallest story, if the statement is violated.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Report is the outcome of all stories.
type Report struct {
	// Command is the one that reports, and Subject is what it judges.
	Command string `json:"-"`
	Subject string `json:"-"`

	Kubernetes string `json:"kubernetes"`
	// FirstSeed is the seed of the first story, and Stories is how many there were.
	FirstSeed int64   `json:"firstSeed"`
	Stories   int     `json:"stories"`
	Seconds   float64 `json:"seconds"`
	// Problems say which stories could not be played to the end.
	Problems []string `json:"problems,omitempty"`
	Results  []Result `json:"results"`
}

// AddStatements adds statements that hold as long as no story violates them.
func (r *Report) AddStatements(statements []drajudge.Statement) {
	for _, s := range statements {
		r.Results = append(r.Results, Result{Outcome: output.OutcomeOK, ID: s.ID, Level: s.Level, Statement: s.Text, Source: s.Source})
	}
}

// Skip says why no story can violate some statements.
func (r *Report) Skip(isSkipped func(id string) bool, why string) {
	for i := range r.Results {
		if isSkipped(r.Results[i].ID) {
			r.Results[i].Outcome, r.Results[i].Seen = output.OutcomeSkipped, why
		}
	}
}

// addStory adds what a story violates, and returns the results that have failed for the first time.
func (r *Report) addStory(seed int64, violations []drajudge.Violation, took time.Duration) []*Result {
	r.Stories++
	r.Seconds += took.Round(time.Millisecond).Seconds()
	var failed []*Result
	for _, v := range violations {
		result := &r.Results[slices.IndexFunc(r.Results, func(result Result) bool { return result.ID == v.Statement.ID })]
		if result.Outcome != output.OutcomeFailed {
			result.Outcome, result.Seen = output.OutcomeFailed, v.String()
			failed = append(failed, result)
		}
		if !slices.Contains(result.Seeds, seed) {
			result.Seeds = append(result.Seeds, seed)
		}
	}
	return failed
}

// countOutcome returns how many statements have an outcome.
func (r *Report) countOutcome(outcome string) int {
	found := 0
	for i := range r.Results {
		if r.Results[i].Outcome == outcome {
			found++
		}
	}
	return found
}

// Print prints the report as a table with the evidence, or as JUnit.
func (r *Report) Print(out io.Writer, format output.Format) error {
	if format == output.JUnit {
		return r.printJUnit(out)
	}
	if err := r.printTable(out); err != nil {
		return err
	}
	for i := range r.Results {
		if r.Results[i].Evidence == nil {
			continue
		}
		if _, err := fmt.Fprintf(out, "\n%s", r.Results[i].explain()); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) printTable(out io.Writer) error {
	rows := output.Rows{Columns: []output.Column{{Name: "result"}, {Name: "id"}, {Name: "level"}, {Name: "stories"}, {Name: "seen"}}}
	for i := range r.Results {
		result := &r.Results[i]
		seen := result.Seen
		if result.Evidence != nil {
			seen = result.Evidence.Seen
		}
		rows.Add(result.Outcome, result.ID, string(result.Level), listSeeds(result.Seeds), seen)
	}
	return rows.Print(out, output.Table)
}

// listSeeds names a few seeds.
func listSeeds(seeds []int64) string {
	var names []string
	for _, seed := range seeds {
		names = append(names, fmt.Sprint(seed))
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("and %d more", len(seeds)-3))
	}
	return strings.Join(names, ", ")
}

// explain is the evidence for reading: the statement, what was seen, and the script.
func (r *Result) explain() string {
	return fmt.Sprintf("# %s (%s): %s\n# Source: %s\n# Seen: %s\n# %s.\n%s", r.ID, r.Level, r.Statement, r.Source, r.Evidence.Seen, r.Evidence.describe(), r.Evidence.Script)
}

func (r *Report) printJUnit(out io.Writer) error {
	s := output.Suite{
		Name:    fmt.Sprintf("%s %s, Kubernetes %s, %d stories from seed %d", r.Command, r.Subject, r.Kubernetes, r.Stories, r.FirstSeed),
		Seconds: r.Seconds, Output: strings.Join(r.Problems, "\n"),
	}
	for i := range r.Results {
		result := &r.Results[i]
		why := &output.Reason{Message: result.Seen, Text: result.Source + ": " + result.Seen}
		if result.Evidence != nil {
			why.Text += "\n" + result.explain()
		}
		s.Add(output.Case{Name: result.ID + ": " + result.Statement, Class: r.Subject}, result.Outcome, why)
	}
	return s.Print(out)
}
