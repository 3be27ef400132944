package output

import (
	"encoding/xml"
	"fmt"
	"io"
)

// JUnit is the format that CI systems read. A command that has it fills in a Suite.
const JUnit Format = "junit"

// Suite is a report in the format JUnit. Its numbers of cases are counted when it is printed.
type Suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Seconds  float64  `xml:"time,attr,omitempty"`
	Cases    []Case   `xml:"testcase"`
	// Output is what the program on trial printed, or what else there is to tell.
	Output string `xml:"system-out,omitempty"`
}

// Case is the outcome of one test. It has passed unless it has a reason.
type Case struct {
	Name    string  `xml:"name,attr"`
	Class   string  `xml:"classname,attr"`
	Seconds float64 `xml:"time,attr"`
	Failure *Reason `xml:"failure"`
	Skipped *Reason `xml:"skipped"`
}

// Reason says in a line, and at length, why a test has failed or was not run.
type Reason struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// The outcomes of a test, as tables show them.
const (
	OutcomeOK      = "ok"
	OutcomeFailed  = "FAILED"
	OutcomeSkipped = "skipped"
)

// Add adds a case with its outcome, and with the reason if it has not passed.
func (s *Suite) Add(c Case, outcome string, why *Reason) {
	switch outcome {
	case OutcomeFailed:
		c.Failure = why
	case OutcomeSkipped:
		c.Skipped = why
	}
	s.Cases = append(s.Cases, c)
}

// Print prints the report.
func (s *Suite) Print(out io.Writer) error {
	s.Tests, s.Failures, s.Skipped = len(s.Cases), 0, 0
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode JUnit report: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s%s\n", xml.Header, text)
	return err
}
