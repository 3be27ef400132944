package parameters

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Limits of a schema, so that parameters as large as they may be, 10 KiB, are checked in a
// second or two by the most costly one.
const (
	// maxSchemaSize counts schemas within a schema, with their required fields and the
	// values of their enums. maxNested counts those in allOf, anyOf, oneOf and not, which
	// are all for the same value.
	maxSchemaSize, maxNested = 1_000, 50
	// maxPatternLength is in bytes, and maxPatternSize is in instructions, of all regular
	// expressions of a schema.
	maxPatternLength, maxPatternSize = 1_000, 10 * lifecycle.MaxPatternSize
)

// size is how much there is to check.
type size struct {
	schemas, nested, pattern int
	errs                     field.ErrorList
}

// checkSize refuses a schema that is too large, or has rules that take too long.
func checkSize(s *v1alpha1.Schema, path *field.Path) field.ErrorList {
	var all size
	all.add(s, path)
	if all.schemas > maxSchemaSize {
		all.errs = append(all.errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("has more than %d fields, required fields and values: leave some out", maxSchemaSize)))
	}
	if all.nested > maxNested {
		all.errs = append(all.errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("has %d schemas in allOf, anyOf, oneOf and not, and may have %d", all.nested, maxNested)))
	}
	if all.pattern > maxPatternSize {
		all.errs = append(all.errs, field.Invalid(path, field.OmitValueType{}, "its regular expressions are too large together: make them shorter, or repeat less"))
	}
	return all.errs
}

func (z *size) add(s *v1alpha1.Schema, path *field.Path) {
	if z.schemas += 1 + len(s.Required) + len(s.Enum); z.schemas > maxSchemaSize {
		return
	}
	z.addRules(s, path)
	for name, property := range s.Properties {
		z.add(&property, path.Child("properties").Key(name))
	}
	for name, schema := range map[string]*v1alpha1.Schema{"additionalProperties": s.AdditionalProperties, "items": s.Items} {
		if schema != nil {
			z.add(schema, path.Child(name))
		}
	}
	for name, list := range map[string][]v1alpha1.Schema{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		z.nested += len(list)
		for i := range list {
			z.add(&list[i], path.Child(name).Index(i))
		}
	}
	if s.Not != nil {
		z.nested++
		z.add(s.Not, path.Child("not"))
	}
}

// addRules refuses what custom resource definitions may not have either: it compares each
// item with each other one.
func (z *size) addRules(s *v1alpha1.Schema, path *field.Path) {
	if s.UniqueItems {
		z.errs = append(z.errs, field.Forbidden(path.Child("uniqueItems"), "takes too long: remove it"))
	}
	if len(s.Pattern) > maxPatternLength {
		z.errs = append(z.errs, field.TooLong(path.Child("pattern"), "", maxPatternLength))
		return
	}
	part := lifecycle.PatternSize(s.Pattern)
	if part > lifecycle.MaxPatternSize {
		z.errs = append(z.errs, field.Invalid(path.Child("pattern"), s.Pattern, "is too large: make it shorter, or repeat less"))
	}
	z.pattern += part
}
