package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/strict"
)

// Refusal is the error of a document that is refused: all that is wrong with it.
type Refusal struct {
	// Source is where the document is from.
	Source string
	// Object is the kind and the name, as far as they are known.
	Object   string
	Problems strict.Problems
}

// Error is a line, or a line for each problem where there are several.
func (r *Refusal) Error() string {
	if r.Object == "" {
		return r.Source + ": " + r.Problems.Error()
	}
	return r.Source + ": " + r.Object + ": " + r.Problems.Error()
}

// refuse is the error of a document with one problem.
func refuse(source, object, path, format string, arguments ...any) error {
	return &Refusal{Source: source, Object: object, Problems: strict.Problems{{Path: path, Text: fmt.Sprintf(format, arguments...)}}}
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

var (
	// part is the part of a spec that may seem wrong where one field of it could not
	// be decoded: an item of a list in the spec, or a field of the spec.
	part = regexp.MustCompile(`^(?:spec|metadata)\.\w+(?:\[\d+\])?`)
	// foundations are parts by which others are judged.
	foundations = []string{"", "spec.driver", "spec.sharedWith", "spec.devices"}
)

// independent are the errors of validation that cannot be due to fields that could
// not be decoded.
func independent(decoding strict.Problems, errs field.ErrorList) strict.Problems {
	var affected []string
	for _, p := range decoding {
		for _, path := range p.Paths() {
			affected = append(affected, part.FindString(path))
		}
	}
	unsure := slices.ContainsFunc(affected, func(part string) bool { return slices.Contains(foundations, part) })
	return strict.Of(slices.DeleteFunc(errs, func(err *field.Error) bool {
		return decoding.Hides(err.Field) || !devices.StandsAlone(err.Field) && (unsure || slices.Contains(affected, part.FindString(err.Field)))
	}))
}
