package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkautoscaler"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// The cells of the tables.
const (
	cellPass        = "pass"
	cellFail        = "**fail**"
	cellByHand      = "**by hand**"
	cellOpen        = "open"
	cellUnsupported = "not supported"
	cellNotRun      = "not run"
)

// head is what the page begins with.
const head = `<!-- note: made by make conformance from docs/conformance; do not edit -->
<!-- cluster: none -->
# Conformance of schedulers and autoscalers

What schedulers and autoscalers make of claims for devices, judged by somebody independent: ` +
	"[`kwok-dractl check-scheduler`](reference/check-scheduler.md) and [`kwok-dractl check-autoscaler`](reference/check-autoscaler.md)" + ` play random stories on
clusters of fake nodes, watch the API, and judge what they see by statements about dynamic resource allocation (DRA). [What was run](#what-was-run) has versions, settings and
the number of stories; [run it again](#run-it-again) says how to get the same on your machine.

| cell | meaning |
|---|---|
| pass | No story violated the statement. That is no proof: a story that would may not have been among them, and few stories touch rare features |
| **fail** | A story violated it, and we have looked into it by hand: it is the program, and not our judge. The cell leads to the smallest story that shows it. It may be a bug that its project knows, or has mended since |
| **by hand** | No story of this run violated it, but we know a way that does, with a script. It may need a moment or a sequence that stories seldom have |
| open | A story violated it, and it is not decided whether the program, the judge or the statement is at fault |
| not supported | The feature is off by default in this version, or the project says that it does not have it. Stories leave it out, and that is no failure |
| not run | There are no results yet |

A *must* is what the API promises; a *should* is what upstream does and users expect, though nothing promises it. So a *should* that fails may be a choice. The projects differ in age and aim, and a column does not say which to use: a
scheduler with more features is tried by more of them. If you maintain one of them and see it treated unfairly, please open an issue; a result goes as soon as it is shown to be wrong.
`

// runAgain is how to make the page.
const runAgain = `
## Run it again

It needs Go, make and git, and a checkout of each project that publishes no module:

<!-- skip: takes hours -->
` + "```sh\n%s\nmake conformance SRC=..              # all of the page\nmake conformance ONLY='1.37' SEEDS=500 # one of them, with more stories\n```" + `

` + "`make conformance`" + ` builds the programs, gives each scheduler and autoscaler a cluster of its own, and writes this page and [its data](conformance/results.json). One story, or your own scheduler:

<!-- skip: the scheduler is the reader's -->
` + "```sh\nkwok-dractl check-scheduler --seed 4 --seeds 1\n```" + `

A script of a failure needs kubectl alone, and a cluster with the scheduler and kube-controller-manager. It names the default scheduler, or the one that was tried, and leaves its objects behind until you run it with ` + "`clean`" + `.
`

// page writes the page.
func (s *store) page() (string, error) {
	var text strings.Builder
	text.WriteString(head)
	for _, part := range []struct {
		title, intro, reference string
		isAutoscaler            bool
		statements              []drajudge.Statement
	}{
		{"Schedulers", "The [scheduler statements](reference/scheduler-statements.md) say in full what must hold.", "scheduler", false, drajudge.Statements()},
		{"Autoscalers", "[Check an autoscaler](reference/check-autoscaler.md#statements) says in full what must hold.", "autoscaler", true, checkautoscaler.Statements()},
	} {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n", part.title, part.intro)
		s.writeTable(&text, part.statements, part.isAutoscaler)
	}
	if err := s.writeViolations(&text); err != nil {
		return "", err
	}
	s.writeRuns(&text)
	var clones []string
	for i := range subjects {
		if c := subjects[i].checkout; c != nil {
			clones = append(clones, fmt.Sprintf("git clone %s ../%s && git -C ../%s checkout %s", c.url, c.folder, c.folder, c.commit))
		}
	}
	fmt.Fprintf(&text, runAgain, strings.Join(clones, "\n"))
	return text.String(), nil
}

// writeTable writes a row for each statement, and a column for each subject of a kind.
func (s *store) writeTable(text *strings.Builder, statements []drajudge.Statement, isAutoscaler bool) {
	columns := []string{"statement", "level"}
	var tried []*subject
	for i := range subjects {
		if subjects[i].isAutoscaler == isAutoscaler {
			tried = append(tried, &subjects[i])
			columns = append(columns, subjects[i].name)
		}
	}
	writeRow(text, columns...)
	text.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	versions := []string{"", ""}
	for _, column := range tried {
		version := ""
		if r := s.resultsOf(column.name); r != nil {
			version = r.Version
		}
		versions = append(versions, version)
	}
	writeRow(text, versions...)
	for _, statement := range statements {
		cells := []string{"`" + statement.ID + "`", string(statement.Level)}
		for _, column := range tried {
			cells = append(cells, s.cell(column, statement.ID))
		}
		writeRow(text, cells...)
	}
}

func writeRow(text *strings.Builder, cells ...string) {
	text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// cell is what became of a statement with a subject.
func (s *store) cell(column *subject, statement string) string {
	r := s.resultsOf(column.name)
	if r == nil {
		return cellNotRun
	}
	i := slices.IndexFunc(r.Results, func(other result) bool { return other.ID == statement })
	if i < 0 {
		return cellNotRun
	}
	f := s.findingOf(r, statement)
	cell := cellOpen
	switch {
	case r.Results[i].Outcome == outcomeSkipped:
		return cellUnsupported
	case r.Results[i].Outcome == outcomeOK && !f.isByHand():
		return cellPass
	case r.Results[i].Outcome == outcomeOK:
		cell = cellByHand
	case f != nil && f.IsFailure:
		cell = cellFail
	}
	return fmt.Sprintf("[%s](#%s)", cell, anchorOf(violationTitle(r, statement)))
}

func violationTitle(r *results, statement string) string {
	return fmt.Sprintf("%s: %s", r.Subject, statement)
}

// dropped is what is not in an anchor.
var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorOf is the anchor of a heading.
func anchorOf(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// writeViolations writes a section for each violation: what was seen, how to see it, and what we know of it.
func (s *store) writeViolations(text *strings.Builder) error {
	text.WriteString("\n## Failures\n")
	texts := map[string]drajudge.Statement{}
	for _, statement := range slices.Concat(drajudge.Statements(), checkautoscaler.Statements()) {
		texts[statement.ID] = statement
	}
	count := 0
	for i := range subjects {
		r := s.resultsOf(subjects[i].name)
		if r == nil {
			continue
		}
		for j := range r.Results {
			violated, f := &r.Results[j], s.findingOf(r, r.Results[j].ID)
			isViolated := violated.Outcome == outcomeFailed
			if !isViolated && (violated.Outcome == outcomeSkipped || !f.isByHand()) {
				continue
			}
			if isViolated && violated.Evidence == nil {
				return fmt.Errorf("write page: %s violates %s without evidence: run it again", r.Subject, violated.ID)
			}
			count++
			statement := texts[violated.ID]
			fmt.Fprintf(text, "\n### %s\n\n> %s\n>\n> %s, %s\n\n", violationTitle(r, violated.ID), statement.Text, statement.Level, statement.Source)
			if isViolated {
				fmt.Fprintf(text, "Version %s, in %d of %d stories (seeds %s). Seen: `%s`\n\n", r.Version, len(violated.Seeds), r.Stories, listSeeds(violated.Seeds), violated.Evidence.Seen)
				fmt.Fprintf(text, "Smallest story: [script for kubectl](conformance/%s), %s.\n\n", scriptPath(&subjects[i], violated.ID), violated.Evidence.describeSize())
			} else {
				fmt.Fprintf(text, "Version %s, in none of %d stories. By hand: [%s](../test/conformance/known/%s).\n\n", r.Version, r.Stories, f.Script, f.Script)
			}
			writeFinding(text, f)
		}
	}
	if count == 0 {
		text.WriteString("\nNone.\n")
	}
	return nil
}

func writeFinding(text *strings.Builder, f *finding) {
	switch {
	case f == nil:
		text.WriteString("Open: nobody has looked into it yet.\n")
		return
	case f.IsFailure:
		text.WriteString("Why it is a failure: ")
	default:
		text.WriteString("Open: ")
	}
	text.WriteString(strings.TrimSpace(f.Text))
	if f.Link != "" {
		fmt.Fprintf(text, " See <%s>.", f.Link)
	}
	text.WriteString("\n")
}

// describeSize says how small the story is.
func (e *evidence) describeSize() string {
	if e.Reproduced {
		return fmt.Sprintf("%d of the %d parts of story %d", e.Parts, e.Whole, e.Seed)
	}
	return fmt.Sprintf("which is the whole of story %d, for it was not seen again in %d more plays", e.Seed, e.Plays)
}

// listSeeds names up to ten seeds.
func listSeeds(seeds []int64) string {
	const most = 10
	var names []string
	for _, seed := range seeds[:min(most, len(seeds))] {
		names = append(names, fmt.Sprint(seed))
	}
	if len(seeds) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// writeRuns writes what was run, and with which settings.
func (s *store) writeRuns(text *strings.Builder) {
	text.WriteString("\n## What was run\n\n")
	writeRow(text, "name", "version", "API server", "stories", "day", "setting")
	text.WriteString("|---|---|---|---|---|---|\n")
	for i := range subjects {
		r := cmp.Or(s.resultsOf(subjects[i].name), &results{})
		stories := "none yet"
		if r.Stories > 0 {
			stories = fmt.Sprint(r.Stories)
		}
		if len(r.Problems) > 0 {
			stories += fmt.Sprintf(", of which %d could not be played to the end", len(r.Problems))
		}
		if r.NodesMade > 0 {
			stories += fmt.Sprintf("; it made %d nodes, and %d would have been enough", r.NodesMade, r.NodesEnough)
		}
		writeRow(text, subjects[i].name, r.Version, strings.TrimPrefix(r.Kubernetes, "v"), stories, r.Date, subjects[i].setting)
	}
	text.WriteString("\nStories have the seeds from 1. A Pod that waits and a claim that is held count only if that lasts half a minute or longer: a busy machine is no failure.\n\nNot supported, and so left out of stories:\n\n")
	writeRow(text, "name", "features", "source")
	text.WriteString("|---|---|---|\n")
	for i := range subjects {
		for _, u := range subjects[i].unsupported {
			writeRow(text, subjects[i].name, "`"+strings.Join(u.features, "`, `")+"`", fmt.Sprintf("[%s](%s)", u.reason, u.link))
		}
	}
	text.WriteString("\nWhat else says `not supported` is off by default in that version of Kubernetes: see the [feature gates](https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/).\n")
}
