package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
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

// place is where a document is, for errors: its source, and its kind and name.
type place struct{ source, object string }

func placeOf(source, kind, name string) place {
	return place{source, fmt.Sprintf("%s %q", kind, name)}
}

// String is the place for the errors of others.
func (p place) String() string {
	if p.source == customResource {
		return p.source + " " + p.object
	}
	return p.source
}

// refuse is the error of a document with one problem.
func (p place) refuse(path, format string, arguments ...any) error {
	return p.refuseFor(strict.Problems{{Path: path, Text: fmt.Sprintf(format, arguments...)}})
}

func (p place) refuseFor(problems strict.Problems) error {
	return &Refusal{Source: p.source, Object: p.object, Problems: problems}
}

// Refusals are those that an error is made of, and the rest of it.
func Refusals(err error) (refusals []*Refusal, rest error) {
	if joined, isJoined := err.(interface{ Unwrap() []error }); isJoined {
		for _, inner := range joined.Unwrap() {
			found, other := Refusals(inner)
			refusals, rest = append(refusals, found...), errors.Join(rest, other)
		}
		return refusals, rest
	}
	if refusal, is := errors.AsType[*Refusal](err); is {
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

// independent are the errors that cannot be due to fields that could not be decoded.
func independent(decoding strict.Problems, errs field.ErrorList) strict.Problems {
	affected := sets.New[string]()
	for _, p := range decoding {
		for _, path := range p.Paths() {
			affected.Insert(part.FindString(path))
		}
	}
	return strict.Of(slices.DeleteFunc(errs, func(err *field.Error) bool {
		return decoding.Hides(err.Field) || !devices.StandsAlone(err.Field) && (affected.HasAny(foundations...) || affected.Has(part.FindString(err.Field)))
	}))
}
