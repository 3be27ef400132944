package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkautoscaler"
	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// kept are the results of the repository.
func kept(t *testing.T) *store {
	t.Helper()
	s := &store{folder: filepath.Join(sidecar.Root(), "docs", "conformance")}
	require.NoError(t, s.readResults())
	return s
}

// TestPageIsOfTheResults: the page is what the results make, with a row for each statement.
func TestPageIsOfTheResults(t *testing.T) {
	t.Parallel()
	page, err := kept(t).page()
	require.NoError(t, err)
	written, err := os.ReadFile(filepath.Join(sidecar.Root(), "docs", "conformance.md"))
	require.NoError(t, err)
	require.Equal(t, page, string(written), "run make conformance-page")
	for _, statement := range slices.Concat(drajudge.Statements(), checkautoscaler.Statements()) {
		require.Contains(t, page, "\n| `"+statement.ID+"` | ", "no row for %s", statement.ID)
	}
}

// TestFailuresHaveEvidence: each violation that was kept has a script for kubectl, and no script is left of an old run. What
// somebody has found out is of a violation that is there, or has a script.
func TestFailuresHaveEvidence(t *testing.T) {
	t.Parallel()
	s := kept(t)
	var wanted []string
	known := map[finding]bool{}
	for i := range subjects {
		r := s.resultsOf(subjects[i].name)
		if r == nil {
			continue
		}
		require.NotEmpty(t, r.Version, r.Subject)
		require.Positive(t, r.Stories, r.Subject)
		for _, violated := range r.Results {
			if violated.Outcome != outcomeFailed {
				continue
			}
			require.NotEmpty(t, violated.Seeds, "%s: %s", r.Subject, violated.ID)
			require.NotNil(t, violated.Evidence, "%s: %s", r.Subject, violated.ID)
			path := scriptPath(&subjects[i], violated.ID)
			script, err := os.ReadFile(filepath.Join(s.folder, path))
			require.NoError(t, err)
			require.Contains(t, string(script), "kubectl create -f -", path)
			wanted = append(wanted, path)
			known[finding{Subject: r.Subject, Version: r.Version, Statement: violated.ID}] = true
		}
	}
	found, err := filepath.Glob(filepath.Join(s.folder, "*", "*.sh"))
	require.NoError(t, err)
	for i := range found {
		found[i], err = filepath.Rel(s.folder, found[i])
		require.NoError(t, err)
	}
	require.ElementsMatch(t, wanted, found)
	for _, f := range s.findings {
		isSeen := known[finding{Subject: f.Subject, Version: f.Version, Statement: f.Statement}]
		require.True(t, isSeen || f.isByHand(), "findings.yaml: %s %s did not violate %s, and there is no script", f.Subject, f.Version, f.Statement)
		if f.Script != "" {
			require.FileExists(t, filepath.Join(sidecar.Root(), "test", "conformance", "known", f.Script))
		}
		require.NotEmpty(t, f.Text)
	}
}

// TestKeepReport: a report takes the place of an older one, with its evidence, and a violation is open until somebody has looked
// into it in that version.
func TestKeepReport(t *testing.T) {
	t.Parallel()
	s := &store{folder: t.TempDir()}
	report := `{"kubernetes": "v1.36.3", "firstSeed": 1, "stories": 7, "seconds": 3, "scheduler": "x", "results": [
		{"outcome": "FAILED", "id": "device-once", "seeds": [3, 5], "seen": "twice", "evidence": {"seed": 3, "parts": 4, "whole": 9, "reproduced": true, "seen": "it is given twice", "script": "kubectl create -f -\n", "story": "x"}},
		{"outcome": "skipped", "id": "counters-total"}, {"outcome": "ok", "id": "pod-placed"}]}`
	require.NoError(t, s.keepReport(&subjects[3], "1.37.2", "2026-11-28", []byte(report)))
	require.NoError(t, s.keepReport(&subjects[2], "1.36.3", "2026-11-28", []byte(report)))
	again := &store{folder: s.folder}
	require.NoError(t, again.readResults())
	require.Equal(t, s.results, again.results)
	require.Equal(t, "kube-scheduler 1.36", again.results[0].Subject)
	require.FileExists(t, filepath.Join(s.folder, "kube-scheduler-1.36", "device-once.sh"))

	again.findings = []finding{
		{Subject: "kube-scheduler 1.36", Version: "1.36.3", Statement: "device-once", IsFailure: true, Text: "It forgets.", Link: "https://example.com/1"},
		{Subject: "kube-scheduler 1.37", Version: "1.37.2", Statement: "pod-placed", IsFailure: true, Text: "It sleeps.", Script: "asleep.sh"},
		{Subject: "kube-scheduler 1.37", Version: "1.37.2", Statement: "counters-total", IsFailure: true, Text: "It is off.", Script: "off.sh"},
	}
	page, err := again.page()
	require.NoError(t, err)
	row := func(page, id string) string {
		_, after, _ := strings.Cut(page, "\n| `"+id+"` | ")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	require.Equal(t, "must | not run | not run | [**fail**](#kube-scheduler-136-device-once) | [open](#kube-scheduler-137-device-once) | not run | not run |", row(page, "device-once"))
	require.Equal(t, "must | not run | not run | not supported | not supported | not run | not run |", row(page, "counters-total"))
	require.Equal(t, "should | not run | not run | pass | [**by hand**](#kube-scheduler-137-pod-placed) | not run | not run |", row(page, "pod-placed"))
	require.Contains(t, page, "Why it is a failure: It forgets. See <https://example.com/1>.")
	require.Contains(t, page, "Version 1.37.2, in none of 7 stories. By hand: [asleep.sh](../test/conformance/known/asleep.sh).\n\nWhy it is a failure: It sleeps.")
	require.Contains(t, page, "in 2 of 7 stories (seeds 3, 5). Seen: `it is given twice`")

	newer := `{"kubernetes": "v1.36.4", "stories": 7, "results": [{"outcome": "ok", "id": "device-once"}]}`
	require.NoError(t, again.keepReport(&subjects[2], "1.36.4", "2026-11-29", []byte(newer)))
	require.NoFileExists(t, filepath.Join(s.folder, "kube-scheduler-1.36", "device-once.sh"))
	require.Len(t, again.results, 2)
}

// TestEvidenceIsNeeded: no page shows a violation that nobody can look into.
func TestEvidenceIsNeeded(t *testing.T) {
	t.Parallel()
	s := &store{results: []results{{Subject: subjects[0].name, Results: []result{{ID: "device-once", Outcome: outcomeFailed}}}}}
	_, err := s.page()
	require.ErrorContains(t, err, "violates device-once without evidence")
}

// TestSubjects: what a project does not support are features that stories can leave out, and each has a source; names of
// folders are different.
func TestSubjects(t *testing.T) {
	t.Parallel()
	folders := map[string]bool{}
	for i := range subjects {
		s := &subjects[i]
		require.False(t, folders[s.folderName()], s.name)
		folders[s.folderName()] = true
		require.Subset(t, checkscheduler.FeatureNames(), s.unsupportedFeatures(), s.name)
		for _, u := range s.unsupported {
			require.Regexp(t, "^https://", u.link)
		}
		if s.checkout != nil && s.checkout.manifest != "" {
			require.FileExists(t, (&player{root: sidecar.Root()}).manifest(s.checkout.manifest))
		}
	}
	require.Equal(t, "kube-scheduler-1.34", subjects[0].folderName())
}

// TestRun: a program that has found something ends with an error, and its report counts; without a report the log has the reason.
func TestRun(t *testing.T) {
	t.Parallel()
	p := &player{logs: t.TempDir()}
	report, err := p.run(t.Context(), &subjects[0], []string{"WHO=x"}, []string{"sh", "-c", `echo "{\"who\": \"$WHO\"}"; exit 1`})
	require.NoError(t, err)
	require.JSONEq(t, `{"who": "x"}`, string(report))
	_, err = p.run(t.Context(), &subjects[0], nil, []string{"sh", "-c", "echo no; exit 2"})
	require.ErrorContains(t, err, "it printed no report, see "+p.logOf(&subjects[0])+": exit status 2")
	content, err := os.ReadFile(p.logOf(&subjects[0]))
	require.NoError(t, err)
	require.Contains(t, string(content), "\nno\n")
}

// TestCheckoutIsNeeded: without a checkout, one learns how to get it.
func TestCheckoutIsNeeded(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(subjects, func(s subject) bool { return s.name == "Volcano" })
	_, _, err := subjects[i].play(t.Context(), &player{seeds: 1}, &subjects[i])
	require.ErrorContains(t, err, "git clone https://github.com/volcano-sh/volcano && git -C volcano checkout v1.15.1")
}
