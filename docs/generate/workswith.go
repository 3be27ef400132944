package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// othersResult is what came of a suite of another project, as `make test-others ARGS=-record` writes it.
type othersResult struct {
	Title, Version, Kubernetes, Kwok          string
	Passed, Failed, Skipped, LeftOut, Seconds int
}

// othersOn is the table of the suites on a minor version of Kubernetes.
func othersOn(minor string) func(root string) (string, error) {
	return func(root string) (string, error) {
		content, err := os.ReadFile(filepath.Join(root, "docs", "works-with.json"))
		if err != nil {
			return "", fmt.Errorf("read the results of suites: %w", err)
		}
		var results []othersResult
		if err := json.Unmarshal(content, &results); err != nil {
			return "", fmt.Errorf("read the results of suites: %w", err)
		}
		var rows [][]string
		for _, result := range results {
			if strings.HasPrefix(result.Kubernetes, minor+".") {
				rows = append(rows, result.tableRow())
			}
		}
		return table([]string{"suite", "version", "Kubernetes, kwok", "specs", "result"}, rows), nil
	}
}

func (r othersResult) tableRow() []string {
	ran := r.Passed + r.Failed
	outcome := []string{strconv.Itoa(r.Passed) + " passed"}
	for _, other := range []struct {
		count int
		name  string
	}{{r.Failed, "failed"}, {r.Skipped, "skipped"}} {
		if other.count > 0 {
			outcome = append(outcome, fmt.Sprintf("%d %s", other.count, other.name))
		}
	}
	return []string{
		r.Title, r.Version, r.Kubernetes + ", " + r.Kwok, fmt.Sprintf("%d of %d", ran, ran+r.Skipped+r.LeftOut),
		strings.Join(outcome, ", ") + ", in " + (time.Duration(r.Seconds) * time.Second).String(),
	}
}
