package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Refusal is the error of a document that is refused: all that is wrong with it.
type Refusal struct {
	// Source says where the document is.
	Source string
	// Object is the kind and the name, as far as they are known.
	Object   string
	Problems strict.Problems
}

// Error returns one line, or one line per problem if there are several.
func (r *Refusal) Error() string {
	if r.Object == "" {
		return r.Source + ": " + r.Problems.Error()
	}
	return r.Source + ": " + r.Object + ": " + r.Problems.Error()
}

// location says where a document is: its source, and its kind and name.
type location struct{ source, object string }

// located is a decoded document, with its location for errors.
type located[T any] struct {
	location
	value T
}

// String names the location in errors of other documents.
func (l location) String() string {
	if l.source == customResource {
		return l.source + " " + l.object
	}
	return l.source
}

// refuseField returns the error of a document with one problem.
func (l location) refuseField(path, format string, arguments ...any) error {
	return &Refusal{l.source, l.object, strict.Problems{{Path: path, Text: fmt.Sprintf(format, arguments...)}}}
}

// refuseDocument returns the error of a document that cannot be decoded, or is invalid. It leaves
// out what may be invalid only because a field could not be decoded.
func (l location) refuseDocument(decoding strict.Problems, invalid field.ErrorList) error {
	affected := sets.New[string]()
	for _, p := range decoding {
		for _, path := range p.Paths() {
			affected.Insert(partOfSpec.FindString(path))
		}
	}
	invalid = slices.DeleteFunc(invalid, func(err *field.Error) bool {
		return decoding.Hides(err.Field) || !devices.StandsAlone(err.Field) && (affected.HasAny(foundations...) || affected.Has(partOfSpec.FindString(err.Field)))
	})
	return &Refusal{l.source, l.object, append(decoding, strict.Of(invalid)...)}
}

var (
	// partOfSpec matches the part of an object that may seem invalid if one field in it could not
	// be decoded: a field of the spec or the metadata, or an item of a list in it.
	partOfSpec = regexp.MustCompile(`^(?:spec|metadata)\.\w+(?:\[\d+\])?`)
	// foundations are parts that decide whether others are valid.
	foundations = []string{"", "spec.driver", "spec.sharedWith", "spec.devices"}
)

// refuseObject returns the error of an object that is of no kind of kwok-dra's, with what its
// writer probably meant.
func refuseObject(source string, value any) error {
	object, isObject := value.(map[string]any)
	at := location{source, nameObject(value)}
	apiVersion, kind := object["apiVersion"], object["kind"]
	name, _ := kind.(string)
	mustBe := "must be " + strings.Join(ownKindNames, " or ")
	switch {
	case !isObject:
		return at.refuseField("", "not an object with apiVersion and kind: %s", strict.Shown(value))
	case apiVersion == nil:
		return at.refuseField("apiVersion", "Required value: must be %s", v1alpha1.APIVersion)
	case apiVersion != v1alpha1.APIVersion && name != "" && didYouMean(name, ownKindNames) == "":
		// Another program's kind, rather than an own one with a misspelled apiVersion.
		do := "kubectl apply it"
		if name == "ConfigMap" {
			do += ", and name it with --config-map"
		} else if _, isAdapted := adaptedKinds[name]; isAdapted {
			do += ", and have it read with --adapters " + name
		}
		return at.refuseField("kind", "this is a %s: %s; kwok-dra reads %s here", name, do, strings.Join(ownKindNames, " and "))
	case apiVersion != v1alpha1.APIVersion:
		return at.refuseField("apiVersion", "Unsupported value: %s: must be %s", strict.Shown(apiVersion), v1alpha1.APIVersion)
	case kind == nil:
		return at.refuseField("kind", "Required value: %s", mustBe)
	}
	return at.refuseField("kind", "Unsupported value: %s: %s%s", strict.Shown(kind), mustBe, didYouMean(name, ownKindNames))
}

// nameObject returns the kind and the name of an object as far as they are known, for errors.
func nameObject(value any) string {
	object, _ := value.(map[string]any)
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if kind == "" || name == "" {
		return ""
	}
	return fmt.Sprintf("%s %q", kind, name)
}

// Refusals splits an error into the refusals that it joins, and the rest.
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
