package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Table prints a line for each spec, why some did not pass, and the total of each suite.
func Table(out io.Writer, suites []*Suite) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SUITE\tVERSION\tSPEC\tRESULT")
	for _, s := range suites {
		if s.Skipped != "" {
			fmt.Fprintf(table, "%s\t\t\t%s\n", s.Name, Skipped)
		}
		for _, spec := range s.Specs {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, s.Version, spec.Name, spec.Result)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range suites {
		writeSuite(out, s)
	}
	return nil
}

// writeSuite says why specs failed or were not run, and counts.
func writeSuite(out io.Writer, s *Suite) {
	fmt.Fprintln(out)
	if s.Skipped != "" {
		fmt.Fprintf(out, "%s: %s, %s\n", s.Name, Skipped, s.Skipped)
		return
	}
	var reasons []string
	leftOut := map[string][]string{}
	for _, spec := range s.Specs {
		switch {
		case spec.Message == "":
		case spec.Result == LeftOut:
			if leftOut[spec.Message] == nil {
				reasons = append(reasons, spec.Message)
			}
			leftOut[spec.Message] = append(leftOut[spec.Message], spec.Name)
		default:
			fmt.Fprintf(out, "%s: %s\n  %s\n", spec.Result, spec.Name, strings.ReplaceAll(spec.Message, "\n", "\n  "))
		}
	}
	for _, reason := range reasons {
		fmt.Fprintf(out, "%s, since %s:\n  %s\n", LeftOut, reason, strings.Join(leftOut[reason], "\n  "))
	}
	for _, m := range s.Measures {
		fmt.Fprintf(out, "%s: %g %s\n", m.Name, m.Value, m.Unit)
	}
	if s.Bad() && s.Log != "" {
		fmt.Fprintf(out, "log: %s\n", s.Log)
	}
	name := s.Name + " " + s.Version
	if s.Kubernetes != "" { // unless there has been no cluster
		name += " on Kubernetes " + s.Kubernetes
	}
	fmt.Fprintf(out, "%s: %s\n", name, s.describeTotal())
}

func (s *Suite) describeTotal() string {
	if s.Problem != "" {
		return s.Problem
	}
	total := fmt.Sprintf("%d of %d specs passed", s.Count(Passed), len(s.Specs)-s.Count(LeftOut))
	if leftOut := s.Count(LeftOut); leftOut > 0 {
		total += fmt.Sprintf(", %d left out", leftOut)
	}
	if skipped := s.Count(Skipped); skipped > 0 {
		total += fmt.Sprintf(", %d skipped", skipped)
	}
	seconds := 0.0
	for _, spec := range s.Specs {
		seconds += spec.Seconds
	}
	if s.Seconds > 0 {
		seconds = s.Seconds
	}
	return total + " in " + time.Duration(seconds*float64(time.Second)).Round(time.Second).String()
}

// JSON prints the same for programs.
func JSON(out io.Writer, suites []*Suite) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(suites)
}
