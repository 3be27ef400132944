package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// problem is what is wrong with a field of a document.
type problem struct {
	path, text string
	// meant is the path of the field that was meant, if there is a guess.
	meant string
}

func (p problem) String() string {
	return p.path + ": " + p.text
}

func problemsOf(errs field.ErrorList) []problem {
	problems := make([]problem, len(errs))
	for i, err := range errs {
		problems[i] = problem{path: err.Field, text: err.ErrorBody()}
	}
	return problems
}

// report makes one error of all problems of an object: a line, or a line for
// each where there are several.
func report(source, object string, problems []problem) error {
	if len(problems) == 1 {
		return fmt.Errorf("%s: %s: %s", source, object, problems[0])
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s: %d problems:", source, object, len(problems))
	for _, p := range problems {
		fmt.Fprintf(&text, "\n  %s", p)
	}
	return errors.New(text.String())
}

// part is the part of a spec that may seem wrong where one field of it could not
// be decoded: an item of a list in the spec, or a field of the spec.
var part = regexp.MustCompile(`^(?:spec|metadata)\.\w+(?:\[\d+\])?`)

// foundations are parts by which others are judged.
var foundations = map[string]bool{"": true, "spec.driver": true, "spec.sharedWith": true, "spec.devices": true}

// independent are the problems found by validation that cannot be due to those
// found by decoding.
func independent(decoding, validation []problem) []problem {
	affected := map[string]bool{}
	for _, p := range decoding {
		affected[part.FindString(p.path)] = true
		if p.meant != "" {
			affected[part.FindString(p.meant)] = true
		}
	}
	for path := range foundations {
		if affected[path] {
			return nil
		}
	}
	var kept []problem
	for _, p := range validation {
		if !affected[part.FindString(p.path)] {
			kept = append(kept, p)
		}
	}
	return kept
}
