package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// The outcomes of statements in reports of kwok-dractl.
const (
	outcomeOK      = "ok"
	outcomeFailed  = "FAILED"
	outcomeSkipped = "skipped"
)

// results are those of one subject.
type results struct {
	Subject    string `json:"subject"`
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
	// Date is the day of the run.
	Date string `json:"date"`
	// FirstSeed is the seed of the first story, and Stories is how many there were.
	FirstSeed int64 `json:"firstSeed"`
	Stories   int   `json:"stories"`
	// Problems say which stories could not be played to the end.
	Problems []string `json:"problems,omitempty"`
	// NodesMade is how many nodes an autoscaler made, and NodesEnough is how many would have been enough.
	NodesMade   int      `json:"nodesMade,omitempty"`
	NodesEnough int      `json:"nodesEnough,omitempty"`
	Results     []result `json:"results"`
}

// result is what became of a statement.
type result struct {
	ID      string  `json:"id"`
	Outcome string  `json:"outcome"`
	Seen    string  `json:"seen,omitempty"`
	Seeds   []int64 `json:"seeds,omitempty"`
	// Evidence is the smallest story that violates it.
	Evidence *evidence `json:"evidence,omitempty"`
}

// evidence is a story. Its script is a file beside the results.
type evidence struct {
	Seed       int64  `json:"seed"`
	Parts      int    `json:"parts"`
	Whole      int    `json:"whole"`
	Plays      int    `json:"plays"`
	Reproduced bool   `json:"reproduced"`
	Seen       string `json:"seen"`
	Script     string `json:"script,omitempty"`
}

// finding is what somebody who has looked into a violation by hand says of it.
type finding struct {
	Subject   string `json:"subject"`
	Version   string `json:"version"`
	Statement string `json:"statement"`
	// IsFailure says that it is the subject, and not the judge. Otherwise it is not decided.
	IsFailure bool `json:"isFailure"`
	// Text says why, in sentences.
	Text string `json:"text"`
	// Link is where the project knows of it. Optional.
	Link string `json:"link,omitempty"`
	// Script is the name of a file in test/conformance/known that violates the statement by kubectl alone. With it, the
	// statement fails even if no story of the last run violated it. Optional.
	Script string `json:"script,omitempty"`
}

// isByHand says whether a script violates the statement, whatever stories do.
func (f *finding) isByHand() bool { return f != nil && f.IsFailure && f.Script != "" }

// store is the folder of what the page is made from.
type store struct {
	folder   string
	results  []results
	findings []finding
}

// readResults reads what was kept, if there is any.
func (s *store) readResults() error {
	s.results, s.findings = nil, nil
	for name, into := range map[string]any{"results.json": &s.results, "findings.yaml": &s.findings} {
		content, err := os.ReadFile(filepath.Join(s.folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read results: %w", err)
		}
		if err := yaml.UnmarshalStrict(content, into); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

// resultsOf are those of a subject, or nil.
func (s *store) resultsOf(name string) *results {
	for i := range s.results {
		if s.results[i].Subject == name {
			return &s.results[i]
		}
	}
	return nil
}

// findingOf is what somebody says of a violation in that version, or nil.
func (s *store) findingOf(r *results, statement string) *finding {
	for i := range s.findings {
		if f := &s.findings[i]; f.Subject == r.Subject && f.Version == r.Version && f.Statement == statement {
			return f
		}
	}
	return nil
}

// scriptPath is the file with the script of a violation, below the folder.
func scriptPath(s *subject, statement string) string {
	return filepath.Join(s.folderName(), statement+".sh")
}

// keepReport puts a report of kwok-dractl in the place of the results of a subject.
func (s *store) keepReport(tried *subject, version, date string, report []byte) error {
	kept := results{}
	if err := json.Unmarshal(report, &kept); err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	kept.Subject, kept.Version, kept.Date = tried.name, version, date
	if err := s.readResults(); err != nil { // others may have been tried meanwhile
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.folder, tried.folderName())); err != nil {
		return fmt.Errorf("remove old evidence: %w", err)
	}
	for i := range kept.Results {
		r := &kept.Results[i]
		if r.Evidence == nil {
			continue
		}
		path := filepath.Join(s.folder, scriptPath(tried, r.ID))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("keep evidence: %w", err)
		}
		if err := os.WriteFile(path, []byte(r.Evidence.Script), 0o644); err != nil {
			return fmt.Errorf("keep evidence: %w", err)
		}
		r.Evidence.Script = ""
	}
	if old := s.resultsOf(tried.name); old != nil {
		*old = kept
	} else {
		s.results = append(s.results, kept)
	}
	order := func(name string) int {
		return slices.IndexFunc(subjects, func(other subject) bool { return other.name == name })
	}
	slices.SortFunc(s.results, func(a, b results) int { return order(a.Subject) - order(b.Subject) })
	content, err := json.MarshalIndent(s.results, "", "  ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return os.WriteFile(filepath.Join(s.folder, "results.json"), append(content, '\n'), 0o644)
}
