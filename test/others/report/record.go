package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Record is what came of a suite on a minor version of Kubernetes, as the table of docs/works-with.md has it.
type Record struct {
	Suite string `json:"suite"`
	// Title names the suite in Markdown.
	Title   string `json:"title"`
	Version string `json:"version"`
	// Kubernetes and Kwok are the versions of the cluster, without v.
	Kubernetes string `json:"kubernetes"`
	Kwok       string `json:"kwok"`
	Passed     int    `json:"passed"`
	Failed     int    `json:"failed,omitempty"`
	Skipped    int    `json:"skipped,omitempty"`
	LeftOut    int    `json:"leftOut,omitempty"`
	// Seconds is how long it took, with its cluster.
	Seconds int `json:"seconds"`
}

// NewRecord counts the specs of a suite.
func NewRecord(s *Suite, took time.Duration) Record {
	return Record{
		Suite: s.Name, Version: s.Version, Kubernetes: s.Kubernetes, Kwok: s.Kwok, Seconds: int(took.Seconds()),
		Passed: s.Count(Passed), Failed: s.Count(Failed), Skipped: s.Count(Skipped), LeftOut: s.Count(LeftOut),
	}
}

// Keep writes a record into a file, in the place of that of an earlier run on the same minor version of Kubernetes.
func Keep(file string, record Record) error {
	content, err := os.ReadFile(file)
	var records []Record
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read results: %w", err)
	default:
		if err := json.Unmarshal(content, &records); err != nil {
			return fmt.Errorf("read results %s: %w", file, err)
		}
	}
	minor := minorOf(record.Kubernetes)
	if i := slices.IndexFunc(records, func(r Record) bool { return r.Suite == record.Suite && minorOf(r.Kubernetes) == minor }); i >= 0 {
		records[i] = record
	} else {
		records = append(records, record)
	}
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(records); err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.WriteFile(file, written.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// minorOf is the minor version of Kubernetes, such as 1.36.
func minorOf(version string) string {
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	return fmt.Sprintf("%d.%d", major, minor)
}
