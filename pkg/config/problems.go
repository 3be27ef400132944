package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problem is what is wrong with a document.
type Problem struct {
	// Path is the field's. It is empty where the whole document is meant.
	Path string
	// Text says what is wrong, with the value and what would be valid.
	Text string
	// Line is the number of the line in the document where it is no YAML, or 0.
	Line int
	// meant is the path of the field that was meant, if there is a guess.
	meant string
}

// String is the problem as errors show it.
func (p Problem) String() string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("line %d of the document: %s", p.Line, p.Text)
	case p.Path == "":
		return p.Text
	}
	return p.Path + ": " + p.Text
}

func problemsOf(errs field.ErrorList) []Problem {
	problems := make([]Problem, len(errs))
	for i, err := range errs {
		problems[i] = Problem{Path: err.Field, Text: err.ErrorBody()}
	}
	return problems
}

// Refusal is the error of a document that is refused: all that is wrong with it.
type Refusal struct {
	// Source is where the document is from.
	Source string
	// Object is the kind and the name, as far as they are known.
	Object   string
	Problems []Problem
}

// Error is a line, or a line for each problem where there are several.
func (r *Refusal) Error() string {
	begin := r.Source + ": "
	if r.Object != "" {
		begin += r.Object + ": "
	}
	if len(r.Problems) == 1 {
		return begin + r.Problems[0].String()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s%d problems:", begin, len(r.Problems))
	for _, p := range r.Problems {
		fmt.Fprintf(&text, "\n  %s", p)
	}
	return text.String()
}

// refuse is the error of a document with one problem.
func refuse(source, object, path, format string, arguments ...any) error {
	return &Refusal{Source: source, Object: object, Problems: []Problem{{Path: path, Text: fmt.Sprintf(format, arguments...)}}}
}

// Refusals are those that an error is made of, and the rest of it.
func Refusals(err error) ([]*Refusal, error) {
	var refusal *Refusal
	joined, isJoined := err.(interface{ Unwrap() []error })
	switch {
	case isJoined:
		var refusals []*Refusal
		var rest []error
		for _, inner := range joined.Unwrap() {
			found, other := Refusals(inner)
			refusals, rest = append(refusals, found...), append(rest, other)
		}
		return refusals, errors.Join(rest...)
	case errors.As(err, &refusal):
		return []*Refusal{refusal}, nil
	}
	return nil, err
}

// part is the part of a spec that may seem wrong where one field of it could not
// be decoded: an item of a list in the spec, or a field of the spec.
var part = regexp.MustCompile(`^(?:spec|metadata)\.\w+(?:\[\d+\])?`)

// foundations are parts by which others are judged.
var foundations = map[string]bool{"": true, "spec.driver": true, "spec.sharedWith": true, "spec.devices": true}

// independent are the problems found by validation that cannot be due to those
// found by decoding.
func independent(decoding, validation []Problem) []Problem {
	affected := map[string]bool{}
	for _, p := range decoding {
		affected[part.FindString(p.Path)] = true
		if p.meant != "" {
			affected[part.FindString(p.meant)] = true
		}
	}
	for path := range foundations {
		if affected[path] {
			return nil
		}
	}
	var kept []Problem
	for _, p := range validation {
		if !affected[part.FindString(p.Path)] {
			kept = append(kept, p)
		}
	}
	return kept
}
